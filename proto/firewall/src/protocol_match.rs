use std::fmt;

use crate::address_range::aligned_blocks;

/// IP protocol numbers of the rules.
pub mod number {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMP6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Transport protocols and ports that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolMatch {
    /// Every protocol.
    Any,
    /// Every packet of an IP protocol.
    Protocol(u8),
    /// Destination ports of TCP, UDP or SCTP.
    Ports {
        /// Number of the IP protocol.
        protocol: u8,
        /// First port.
        first: u16,
        /// Last port, not below `first`.
        last: u16,
    },
    /// Packets of ICMP with a type; of ICMP for IPv6 if `protocol` says so.
    IcmpType {
        /// [`number::ICMP`] or [`number::ICMP6`].
        protocol: u8,
        /// The type.
        kind: u8,
    },
}

impl ProtocolMatch {
    /// `true` if packets of the family can match: ICMP of the other family cannot.
    #[must_use]
    pub fn fits(self, is_ipv4: bool) -> bool {
        match self {
            Self::Protocol(number::ICMP)
            | Self::IcmpType {
                protocol: number::ICMP,
                ..
            } => is_ipv4,
            Self::Protocol(number::ICMP6)
            | Self::IcmpType {
                protocol: number::ICMP6,
                ..
            } => !is_ipv4,
            _ => true,
        }
    }

    /// Number of values under a mask that it is for: those of a range of ports are at most 30.
    #[must_use]
    pub fn blocks(self) -> usize {
        match self {
            Self::Ports { first, last, .. } => aligned_blocks(first.into(), last.into()),
            _ => 1,
        }
    }
}

/// Name of an IP protocol, or its number.
#[must_use]
pub fn protocol_name(protocol: u8) -> String {
    match protocol {
        number::ICMP => "icmp".to_owned(),
        number::TCP => "tcp".to_owned(),
        number::UDP => "udp".to_owned(),
        number::ICMP6 => "icmpv6".to_owned(),
        number::SCTP => "sctp".to_owned(),
        other => other.to_string(),
    }
}

impl fmt::Display for ProtocolMatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Any => out.write_str("any"),
            Self::Protocol(protocol) => out.write_str(&protocol_name(protocol)),
            Self::Ports {
                protocol,
                first,
                last,
            } if first == last => write!(out, "{} {first}", protocol_name(protocol)),
            Self::Ports {
                protocol,
                first,
                last,
            } => write!(out, "{} {first}-{last}", protocol_name(protocol)),
            Self::IcmpType { protocol, kind } => {
                write!(out, "{} type {kind}", protocol_name(protocol))
            }
        }
    }
}
