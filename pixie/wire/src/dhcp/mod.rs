//! DHCPv4 messages (RFC 2131) with the options of network boot (RFC 2132, 3046, 4578, 3679).

mod message;
mod options;

pub use message::{BOOTP_REPLY, BOOTP_REQUEST, DecodeError, Kind, Message};
pub use options::{Options, code};
