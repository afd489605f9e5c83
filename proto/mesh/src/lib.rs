//! Messages, clients and server traits of the mesh API, generated from
//! `proto/schema/metalmesh/mesh/v1`.
//!
//! Of each service `XService` there is a client `XServiceClient` (made from a
//! [`proto_link::MeshClient`]), a trait `XService` for control, its router entry
//! `XServiceServer`, and a module `x_service` with the methods' constants. [`METHODS`] is the
//! table of all methods with who may call them; the build fails for a method without it.
//!
//! Desired state that an agent keeps is signed: [`sealed`].
//! Messages that carry secrets print as `<redacted>`.

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

pub use generated::*;
pub use proto_link::{CallerKind, Code, LinkStatus, MeshClient, MethodSpec, Peer, Sink, Streaming};
