//! Concurrency and rate limits per caller, for every listener.
//!
//! [`Places`] limits what is in use at the same time, in total and per caller. [`Buckets`] limits
//! the rate per caller (GCRA). [`network`] is the key of a caller that is known by its address only.
//! [`is_flat`] and [`has_few_brackets`] bound the nesting of YAML before it is parsed.
//!
//! Invariants:
//! - memory is bounded by the number of places, or by the maximum of callers of the buckets;
//! - a caller gets a further place only up to an eighth of the places that are free or its own;
//! - a place returns to the pool when its guard is dropped;
//! - all addresses of one IPv6 /64 are one caller.

mod address;
mod buckets;
mod nesting;
mod places;

pub use address::network;
pub use buckets::{Buckets, Rate};
pub use nesting::{
    BRACKETS_MAX, NESTED_PROBLEM, NESTED_REMEDY, NESTING_MAX, has_few_brackets, is_flat,
};
pub use places::{Place, Places};
