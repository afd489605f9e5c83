//! Messages, clients and server traits of the mesh API, generated from
//! `proto/schema/metalmesh/mesh/v1`.
//!
//! Each service `XService` has a client `XServiceClient` (made from a [`proto_link::MeshClient`]), a
//! trait `XService` for control, its router entry `XServiceServer`, and a module `x_service` with
//! the methods' constants. [`METHODS`] is the table of all methods with their permitted callers.
//!
//! Desired state that an agent stores is signed ([`sealed`]).
//!
//! Invariants:
//! - every method names its callers and its audit class; the build fails without them;
//! - no method takes a stream from its caller;
//! - a signature covers every other byte of a message: it is the last field and occurs once;
//! - `Debug` of messages with secrets prints `<redacted>` in their place.

mod redacted;
pub mod sealed;

#[expect(
    clippy::doc_markdown,
    clippy::large_enum_variant,
    reason = "generated code"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/metalmesh.mesh.v1.rs"));
}

/// Most prefixes of each IP version in the filter of a port. Further ones are not sent, and an agent
/// refuses a longer filter.
pub const PORT_PREFIXES_MAX: usize = 4096;
/// Most VNIs in the filter of a firewall's port. Further ones are not sent, and an agent refuses a
/// longer filter.
pub const PORT_VNIS_MAX: usize = 1024;

/// Most IP prefixes that a firewall may announce by EVPN in one network.
pub const NETWORK_PREFIXES_MAX: usize = 4096;

/// Most IP prefixes that a firewall may announce by EVPN in all of its networks.
pub const FIREWALL_PREFIXES_MAX: usize = 8192;

/// Longest distance of a firewall's routes. That of a firewall whose rules are not in force, and the
/// one that the installer writes.
pub const FIREWALL_DISTANCE_MAX: u32 = 8;

/// AS numbers in front of a path for each step of distance. More than a path through the fabric adds:
/// a leaf must take a firewall at another leaf, over spine and super-spine, before a standby at its
/// own port.
pub const FIREWALL_DISTANCE_STEP: u32 = 6;

pub use generated::*;
pub use proto_link::{CallerKind, Code, LinkStatus, MeshClient, MethodSpec, Peer, Sink, Streaming};
