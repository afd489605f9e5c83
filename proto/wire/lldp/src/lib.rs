//! LLDP (IEEE 802.1AB): a machine learns its switch ports, and a switch the machines on its ports.
//!
//! One codec serves both ends. It reads chassis id, port id, TTL, system name and system
//! description, and skips other TLVs. [`Socket`] sends and receives whole frames on one interface
//! (`AF_PACKET`).
//!
//! LLDP is not authenticated: a frame does not prove the identity of its sender.
//!
//! Invariants:
//! - the decoder never panics and never allocates more than a small multiple of its input;
//! - a frame without the three mandatory TLVs, in their order, is refused;
//! - text of a neighbour contains no control characters, which would reach logs and terminals.

mod frame;
mod socket;
mod tlv;

pub use frame::{DecodeError, FRAME_MAX, Frame, Mac};
pub use socket::{Socket, mac_of};
