//! TFTP packets (RFC 1350) with options (RFC 2347, 2348, 2349, 7440).
//!
//! Pure: bytes in, values out, and back; `pixie-server` owns the sockets and the files.
//!
//! Invariants:
//! - the decoder never panics and never allocates more than a small multiple of its input;
//! - `decode(encode(x)) == x` for every packet that the encoder accepts.
//!
//! Entry point: [`Packet`].

mod packet;

pub use packet::{DecodeError, Packet, Request, error_code};
