//! The services of the public API for users: decode, propose or read, encode.
//!
//! The services are in one folder for each audience: `tenant` (`metalstack.api.v2`), `admin`
//! (`metalstack.admin.v2`) and `site` (`metalmesh.admin.v1`), with one file a resource. They do
//! not use each other; what tenants and administrators do alike is in `resource`.
//! [`NodeContext`] is what they need beside the state; [`doctor`] is what a
//! node tells of where it runs, `image_digest` finds the digests of images whose caller gives none.
//!
//! Invariants:
//! - a handler writes only with the permit that the gate gave for this very call;
//! - what a caller may not see is not found.

mod admin;
pub mod doctor;
mod grpc;
mod image_digest;
mod node;
mod resource;
mod routes;
pub mod services;
mod site;
mod tenant;

pub use image_digest::{FetchLimits, ImageDigests};
pub use node::NodeContext;
