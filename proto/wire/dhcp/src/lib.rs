//! DHCPv4 messages (RFC 2131) with the options of network boot (RFC 2132, 3046, 4578, 3679).
//!
//! Pure: bytes in, values out, and back. No sockets, no clock, no policy: `pixie-boot` decides what
//! to answer, `pixie-server` and `agents-hammer` own the sockets.
//!
//! Invariants:
//! - the decoder never panics and never allocates more than a small multiple of its input;
//! - `decode(encode(x)) == x` for every message that the encoder accepts;
//! - the encoder never writes a message that the decoder refuses.
//!
//! Entry points: [`Message`], [`RelayAgentInfo`].

mod datagram;
mod message;
mod options;
mod relay_agent;

pub use datagram::{ClientFrame, ServerFrame};
pub use message::{BOOTP_REPLY, BOOTP_REQUEST, DecodeError, Kind, Message};
pub use options::{Options, code};
pub use relay_agent::{RelayAgentError, RelayAgentInfo};
