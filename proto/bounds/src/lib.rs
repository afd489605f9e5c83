//! Bounds that every listener shares, so that one caller never takes what is there for all.
//!
//! [`Places`] counts what is in use at the same time, in all and for each caller; [`Buckets`]
//! counts how often a caller did something (GCRA). [`network`] is the key of a caller that is
//! known by its address only.
//!
//! Invariant: memory is bounded by the number of places, or by the number of callers of a bucket.

mod address;
mod buckets;
mod places;

pub use address::network;
pub use buckets::{Buckets, Rate};
pub use places::{Place, Places};
