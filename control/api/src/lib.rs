//! The services of the public API for users: decode, propose or read, encode.
//!
//! The services are in one folder for each audience: `tenant` (`metalstack.api.v2`), `admin`
//! (`metalstack.admin.v2`) and `site` (`metalmesh.admin.v1`), with one file a resource. Code that
//! the services of tenants and administrators share is in `resource`. [`NodeContext`] holds the
//! parts of the node that handlers use beside the state, [`doctor`] collects facts about the
//! process, and `image_digest` finds the digests of images whose caller gives none.
//!
//! Invariants:
//! - a handler writes only with the permit of its own call, which the gate made;
//! - the folders of the audiences do not use each other (`./dev check`);
//! - another project's or tenant's object gives the same `not_found` as one that does not exist;
//! - a dry run changes neither the state nor another system, such as the VPN;
//! - the secret of a token or a ticket is in the answer of the call that makes it, and in no other.
//!
//! Entry point: [`services::Services`].

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
