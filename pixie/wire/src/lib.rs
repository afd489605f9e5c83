//! DHCPv4 and TFTP as bytes, and the IPv6 router advertisement: the codecs of network boot.
//!
//! Pure: bytes in, values out, and back. No sockets, no clock, no policy; what to answer is
//! decided in `pixie-boot`, and `pixie-server` owns the sockets.
//!
//! Why our own and not `dhcproto`: that crate brings a DNS library for options that network boot
//! never uses, and we need unknown options and option overload kept byte for byte.
//!
//! Invariants:
//! - a decoder never panics and never allocates more than a small multiple of its input; each
//!   decoder is one plain function of a byte slice, so a fuzzer can call it directly;
//! - `decode(encode(x)) == x` for every value an encoder accepts;
//! - an encoder never writes a packet that its own decoder refuses.
//!
//! Entry points: [`dhcp::Message`], [`tftp::Packet`], [`ndp::RouterAdvertisement`].

pub mod dhcp;

pub mod ndp;
pub mod tftp;

pub use proto_types::MacAddr;
