//! Ranges of addresses: which of them lead to one host of the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `true` for addresses that lead to one host of the internet.
pub fn is_public(address: IpAddr) -> bool {
    !is_special(address) && !is_for_private_use(address)
}

/// `true` for addresses that lead to no other host, or to many, and for those that carry an address of
/// the other family.
pub fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_special_v4(address),
        IpAddr::V6(address) => is_special_v6(address),
    }
}

/// `true` for addresses that anybody may use inside of a network.
pub fn is_for_private_use(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Addresses that lead to no other host, or to many.
fn is_special_v4(address: Ipv4Addr) -> bool {
    // 0.0.0.0/8 is this host; 240.0.0.0/4 has the broadcast address; 192.0.0.0/24 is for protocols,
    // 198.18.0.0/15 for measurements.
    let [first, second, third, _] = address.octets();
    first == 0
        || (first, second, third) == (192, 0, 0)
        || (first, second & 0xFE) == (198, 18)
        || first >= 240
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    // 100.64.0.0/10 is shared by providers and their customers (RFC 6598).
    address.is_private() || (first == 100 && (64..128).contains(&second))
}

fn is_special_v6(address: Ipv6Addr) -> bool {
    // Forms that carry an IPv4 address (mapped, compatible, translated, NAT64, 6to4, ISATAP) would go
    // around the checks of IPv4 addresses.
    let [first, second, third, fourth, fifth, sixth, ..] = address.segments();
    let is_zero = (first, second, third, fourth) == (0, 0, 0, 0);
    let is_translated = fifth == 0xFFFF && sixth == 0;
    let carries_ipv4 = (is_zero && (fifth == 0 || is_translated))
        || (first == 0x64 && second == 0xFF9B)
        || first == 0x2002
        || (fifth & 0xFDFF == 0 && sixth == 0x5EFE);
    // 2001::/23 is for protocols, with Teredo; 100::/64 is discarded, 5f00::/16 is for segment
    // routing.
    let is_for_protocols = (first == 0x2001 && second & 0xFE00 == 0)
        || (first, second, third, fourth) == (0x100, 0, 0, 0)
        || first == 0x5F00;
    carries_ipv4
        || is_for_protocols
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unicast_link_local()
        // Site-local addresses, which some hosts still route.
        || first & 0xFFC0 == 0xFEC0
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn public_addresses_lead_to_one_host() {
        for (address, expected) in [
            ("203.0.113.7", true),
            ("2001:db8::1", true),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("224.0.0.1", false),
            ("fd00::1", false),
            ("::1", false),
            ("::ffff:203.0.113.7", false),
            ("fe80::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
