/// A register of 32 bits, from 0 to 15. A longer value continues in those after it.
pub type Register = u8;

/// A property of a packet outside of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaKey {
    /// Name of the interface that it came in by, 16 bytes.
    InputName,
    /// Name of the interface that it leaves by, 16 bytes.
    OutputName,
    /// Family: 2 for IPv4, 10 for IPv6; one byte.
    Family,
    /// IP protocol, one byte.
    Protocol,
    /// User of the socket that sent it, four bytes. A packet that no process of this host sent has none,
    /// and matches nothing.
    SocketUser,
}

/// Header that a payload is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadBase {
    /// IP header.
    Network,
    /// Header of TCP, UDP, SCTP or ICMP.
    Transport,
}
