//! The services of the public API for users: decode, propose or read, encode.
//!
//! [`services`] has one file a resource, the tenants' side and the administrators' side of it.
//! [`NodeContext`] is what they need beside the state; [`doctor`] is what a
//! node tells of where it runs, `image_digest` finds the digests of images whose caller gives none.
//!
//! Invariants:
//! - a handler writes only with the permit that the gate gave for this very call;
//! - what a caller may not see is not found.

pub mod doctor;
mod image_digest;
mod node;
pub mod services;

pub use image_digest::{FetchLimits, ImageDigests};
pub use node::NodeContext;
