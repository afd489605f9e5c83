//! Address families of BGP.

use std::fmt;

/// An address family with its subsequent family, in FRR's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4 unicast.
    Ipv4,
    /// IPv6 unicast.
    Ipv6,
    /// EVPN.
    Evpn,
}

/// A value for every address family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerFamily<T> {
    /// Of IPv4 unicast.
    pub ipv4: T,
    /// Of IPv6 unicast.
    pub ipv6: T,
    /// Of EVPN.
    pub evpn: T,
}

/// A value for each of the two unicast families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerIp<T> {
    /// Of IPv4 unicast.
    pub ipv4: T,
    /// Of IPv6 unicast.
    pub ipv6: T,
}

impl Family {
    /// Every family, in FRR's order.
    pub const ALL: [Self; 3] = [Self::Ipv4, Self::Ipv6, Self::Evpn];

    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        match words {
            ["ipv4"] | ["ipv4", "unicast"] => Some(Self::Ipv4),
            ["ipv6"] | ["ipv6", "unicast"] => Some(Self::Ipv6),
            ["l2vpn", "evpn"] => Some(Self::Evpn),
            _ => None,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "ipv4 unicast",
            Self::Ipv6 => "ipv6 unicast",
            Self::Evpn => "l2vpn evpn",
        })
    }
}

impl<T> PerFamily<T> {
    /// The value of a family.
    pub fn of(&self, family: Family) -> &T {
        match family {
            Family::Ipv4 => &self.ipv4,
            Family::Ipv6 => &self.ipv6,
            Family::Evpn => &self.evpn,
        }
    }

    /// The value of a family, to change it.
    pub fn of_mut(&mut self, family: Family) -> &mut T {
        match family {
            Family::Ipv4 => &mut self.ipv4,
            Family::Ipv6 => &mut self.ipv6,
            Family::Evpn => &mut self.evpn,
        }
    }
}

impl<T> PerIp<T> {
    /// The value of a unicast family. `None` for EVPN.
    pub fn of(&self, family: Family) -> Option<&T> {
        match family {
            Family::Ipv4 => Some(&self.ipv4),
            Family::Ipv6 => Some(&self.ipv6),
            Family::Evpn => None,
        }
    }

    /// The value of a unicast family, to change it. `None` for EVPN.
    pub fn of_mut(&mut self, family: Family) -> Option<&mut T> {
        match family {
            Family::Ipv4 => Some(&mut self.ipv4),
            Family::Ipv6 => Some(&mut self.ipv6),
            Family::Evpn => None,
        }
    }
}
