use thiserror::Error;

/// A value that no switch can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// A name is empty, too long or has characters that a switch refuses.
    #[error("{name:?} is no name of {of}: 1 to {max} of a-z A-Z 0-9 . _ : -")]
    Name {
        /// The name.
        name: String,
        /// Kind of the object.
        of: &'static str,
        /// Longest name, bytes.
        max: usize,
    },
    /// An MTU is out of range.
    #[error("{0} is no MTU: 1280 to 9216 bytes")]
    Mtu(u32),
    /// A VLAN id is out of range.
    #[error("{0} is no VLAN: 1 to 4094")]
    Vlan(u16),
    /// A routing table is one of the kernel's own.
    #[error("{0} is no table of a VRF: not 0 and not 253 to 255")]
    Table(u32),
    /// An AS number is reserved.
    #[error("{0} is no AS number: not 0, 23456, 65535 or 4294967295")]
    Asn(u32),
    /// A router id is unspecified.
    #[error("0.0.0.0 is no router id")]
    RouterId,
    /// An address cannot be one of a host or tunnel end.
    #[error("{0} is no unicast address")]
    Address(std::net::IpAddr),
    /// A gateway has no address.
    #[error("a gateway needs an address")]
    NoGateway,
    /// A prefix rule permits shorter or impossible lengths.
    #[error("le {le} does not fit {prefix}")]
    Length {
        /// The prefix.
        prefix: ipnet::IpNet,
        /// Longest permitted prefix, bits.
        le: u8,
    },
    /// An as-path list permits no origin.
    #[error("an as-path list needs an AS number")]
    NoOrigin,
    /// A filter would permit every source.
    #[error("{0} is every address, and no source of a filter")]
    OpenSource(ipnet::IpNet),
    /// A route map has no rule.
    #[error("a route map needs a rule")]
    NoRule,
}
