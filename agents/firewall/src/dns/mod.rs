//! Names in rules: a DNS proxy that learns the addresses of names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a key in a set of a name. `None` if it is none.
#[must_use]
pub fn address_of(key: &[u8]) -> Option<IpAddr> {
    match key.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(key).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(key).ok()?).into()),
        _ => None,
    }
}

/// The key of an address in a set of a name.
pub(crate) fn key_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
