//! LLDP (IEEE 802.1AB): how a machine learns which switch port it hangs on, and the switch who
//! hangs there.
//!
//! One codec for both ends. It knows the four TLVs that the two ends act on (chassis id, port id,
//! system name, system description), skips the rest, and never panics on what a neighbour sends.
//! `Socket` carries whole frames on one interface through `AF_PACKET`.
//!
//! Nothing here is authenticated: a neighbour is a hint for humans and for the first wiring of a
//! machine to its port, never a proof of identity.

mod frame;
mod socket;
mod tlv;

pub use frame::{DecodeError, FRAME_MAX, Frame, Mac};
pub use socket::{Socket, mac_of};
