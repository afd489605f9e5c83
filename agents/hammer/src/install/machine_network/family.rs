use std::net::IpAddr;

/// A family of addresses, with its words in FRR's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// Both, in the order of a configuration.
    pub(super) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub(super) const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The word before `address` and `prefix-list`.
    pub(super) const fn keyword(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ipv6",
        }
    }

    /// The word after `address-family`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }
}
