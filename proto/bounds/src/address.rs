//! The key of a caller that is known by its address only.

use std::net::{IpAddr, Ipv6Addr};

/// The part of an address that one caller cannot choose freely: a whole IPv4 address, or the first
/// 64 bits of an IPv6 address. An IPv4-mapped IPv6 address counts as IPv4.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        // A host may use any address of its /64 (SLAAC, privacy extensions). Counting single
        // addresses would give one caller 2^64 shares.
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_network_however_it_is_written() {
        for (address, of) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ] {
            let of: IpAddr = of.parse().unwrap();
            assert_eq!(network(address.parse().unwrap()), of, "{address}");
        }
    }
}
