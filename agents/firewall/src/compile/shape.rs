//! Shapes: which bits of a packet a key holds.

/// Bits of the transport protocol in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportShape {
    /// The key has none.
    Any,
    /// The protocol.
    Protocol,
    /// The protocol, and as many leading bits of the destination port.
    Port(u8),
    /// The protocol, and the type of ICMP.
    IcmpType,
}

/// Bits of a packet in a key. Keys of one shape are in one map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// `true` for IPv4.
    pub is_ipv4: bool,
    /// Leading bits of the source address.
    pub source_len: u8,
    /// Leading bits of the destination address.
    pub destination_len: u8,
    /// Bits of the transport protocol.
    pub transport: TransportShape,
}

impl Shape {
    /// Name in the names of maps: `4s0d32p16`.
    #[must_use]
    pub fn name(&self) -> String {
        let family = if self.is_ipv4 { '4' } else { '6' };
        let transport = match self.transport {
            TransportShape::Any => String::new(),
            TransportShape::Protocol => "t".to_owned(),
            TransportShape::Port(bits) => format!("p{bits}"),
            TransportShape::IcmpType => "i".to_owned(),
        };
        format!(
            "{family}s{}d{}{transport}",
            self.source_len, self.destination_len
        )
    }

    /// `true` if the key is empty: every packet of the family matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.source_len == 0 && self.destination_len == 0 && self.transport == TransportShape::Any
    }
}
