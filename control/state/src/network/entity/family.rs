//! Versions of IP, and prefix lengths for each of them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// One or both versions of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkFamily {
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
    /// Both.
    Dual,
}

/// A version of IP.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The name in the stored names of prefix pools, which never changes.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
    /// Of an address.
    pub const fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }
    /// Of a prefix.
    pub const fn of_net(net: &IpNet) -> Self {
        match net {
            IpNet::V4(_) => Self::V4,
            IpNet::V6(_) => Self::V6,
        }
    }
}

/// A length for each version of IP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildLength {
    /// IPv4 prefix length, 1 to 32. `None` means not given.
    pub v4: Option<u8>,
    /// IPv6 prefix length, 1 to 128. `None` means not given.
    pub v6: Option<u8>,
}

impl ChildLength {
    /// Of this version.
    pub const fn get(&self, family: Family) -> Option<u8> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}
