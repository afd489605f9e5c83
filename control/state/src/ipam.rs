//! Prefixes and addresses: first fit, from the tables alone, so that nothing can leak.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::entities::Family;

/// First and last address as numbers.
fn bounds(net: &IpNet) -> (u128, u128) {
    (to_number(net.network()), to_number(net.broadcast()))
}

fn to_number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

fn to_ip(number: u128, family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX))),
        Family::V6 => IpAddr::V6(Ipv6Addr::from(number)),
    }
}

fn to_net(number: u128, length: u8, family: Family) -> Option<IpNet> {
    match to_ip(number, family) {
        IpAddr::V4(ip) => Ipv4Net::new(ip, length).ok().map(IpNet::V4),
        IpAddr::V6(ip) => Ipv6Net::new(ip, length).ok().map(IpNet::V6),
    }
}

/// Whether the two share an address.
pub(crate) fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

/// Whether the prefix has no bits beyond its length.
pub(crate) fn is_canonical(net: &IpNet) -> bool {
    net.addr() == net.network()
}

/// The first free prefix of this length inside one of the parents.
pub(crate) fn carve(
    parents: &[IpNet],
    family: Family,
    length: u8,
    used: &[IpNet],
) -> Option<IpNet> {
    let mut used: Vec<_> = used
        .iter()
        .filter(|net| Family::of_net(net) == family)
        .map(bounds)
        .collect();
    used.sort_unstable();
    parents
        .iter()
        .filter(|net| Family::of_net(net) == family && net.prefix_len() <= length)
        .find_map(|parent| carve_one(parent, family, length, &used))
}

fn carve_one(parent: &IpNet, family: Family, length: u8, used: &[(u128, u128)]) -> Option<IpNet> {
    let (first, last) = bounds(parent);
    let host_bits = u32::from(parent.max_prefix_len().checked_sub(length)?);
    // A /0 of IPv6 has no representable size; it fits only when nothing is used.
    let size_less_one = 1u128
        .checked_shl(host_bits)
        .map_or(u128::MAX, |size| size - 1);
    let mut at = first;
    for (from, to) in used
        .iter()
        .filter(|(from, to)| *to >= first && *from <= last)
    {
        if at.checked_add(size_less_one).is_some_and(|end| end < *from) {
            break;
        }
        if *to >= at {
            // On to the first aligned number beyond what is used.
            at = (to | size_less_one).checked_add(1)?;
        }
    }
    let end = at.checked_add(size_less_one)?;
    if end <= last {
        to_net(at, length, family)
    } else {
        None
    }
}

/// First and last address that a host may have.
fn host_bounds(net: &IpNet) -> (u128, u128) {
    let (first, last) = bounds(net);
    match net {
        // Network and broadcast address; a /31 or /32 has neither.
        IpNet::V4(net) if net.prefix_len() < 31 => (first + 1, last - 1),
        // The subnet-router anycast address.
        IpNet::V6(net) if net.prefix_len() < 127 => (first + 1, last),
        _ => (first, last),
    }
}

/// Whether a host may have this address.
pub(crate) fn is_usable(net: &IpNet, ip: IpAddr) -> bool {
    let (first, last) = host_bounds(net);
    net.contains(&ip) && (first..=last).contains(&to_number(ip))
}

/// The first free address; `used` must be in order.
pub(crate) fn next_ip(net: &IpNet, used: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let family = Family::of_net(net);
    let (mut at, last) = host_bounds(net);
    for taken in used.filter(|ip| net.contains(ip)).map(to_number) {
        if taken > at {
            break;
        }
        if taken == at {
            at = at.checked_add(1)?;
        }
    }
    (at <= last).then(|| to_ip(at, family))
}

/// How many addresses a host may have out of it; saturates.
pub(crate) fn host_count(net: &IpNet) -> u64 {
    let (first, last) = host_bounds(net);
    u64::try_from((last - first).saturating_add(1)).unwrap_or(u64::MAX)
}

/// How many prefixes of this length are in it; saturates.
pub(crate) fn prefix_count(net: &IpNet, length: u8) -> u64 {
    let bits = u32::from(length.saturating_sub(net.prefix_len()));
    1u64.checked_shl(bits).unwrap_or(u64::MAX)
}

/// The smallest number of the pool that is not in `used`, which must be in order.
pub(crate) fn next_number(
    mut used: impl Iterator<Item = u32>,
    first: u32,
    last: u32,
) -> Option<u32> {
    let mut at = first;
    for taken in used.by_ref().skip_while(|number| *number < first) {
        if taken > at {
            break;
        }
        at = taken.checked_add(1)?;
    }
    (at <= last).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }
    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| net(text)).collect()
    }

    #[test]
    fn carves_the_first_gap() {
        for (parents, length, used, expected) in [
            (&["10.0.0.0/16"][..], 22, &[][..], Some("10.0.0.0/22")),
            (&["10.0.0.0/16"], 22, &["10.0.0.0/22"], Some("10.0.4.0/22")),
            (&["10.0.0.0/16"], 22, &["10.0.4.0/22"], Some("10.0.0.0/22")),
            (&["10.0.0.0/16"], 22, &["10.0.0.0/24"], Some("10.0.4.0/22")),
            (
                &["10.0.0.0/16"],
                24,
                &["10.0.0.0/22", "10.0.5.0/24"],
                Some("10.0.4.0/24"),
            ),
            (&["10.0.0.0/24"], 24, &["10.0.0.0/24"], None),
            (
                &["10.0.0.0/24", "10.1.0.0/24"],
                24,
                &["10.0.0.0/24"],
                Some("10.1.0.0/24"),
            ),
            (&["10.0.0.0/24"], 22, &[], None),
            (
                &["255.255.255.0/24"],
                25,
                &["255.255.255.0/25"],
                Some("255.255.255.128/25"),
            ),
            (&["255.255.255.0/24"], 25, &["255.255.255.0/24"], None),
            (&["10.0.0.0/8"], 8, &["192.168.0.0/16"], Some("10.0.0.0/8")),
        ] {
            let got = carve(&nets(parents), Family::V4, length, &nets(used));
            assert_eq!(got, expected.map(net), "{parents:?} /{length} {used:?}");
        }
        let v6 = carve(&nets(&["fd00::/48"]), Family::V6, 64, &nets(&["fd00::/64"]));
        assert_eq!(v6, Some(net("fd00:0:0:1::/64")));
        assert_eq!(
            carve(&nets(&["::/0"]), Family::V6, 0, &[]),
            Some(net("::/0"))
        );
        assert_eq!(
            carve(&nets(&["::/0"]), Family::V6, 0, &nets(&["fd00::/64"])),
            None
        );
    }

    #[test]
    fn gives_the_first_free_address() {
        for (prefix, used, expected) in [
            ("10.0.0.0/30", &[][..], Some("10.0.0.1")),
            ("10.0.0.0/30", &["10.0.0.1"], Some("10.0.0.2")),
            ("10.0.0.0/30", &["10.0.0.2"], Some("10.0.0.1")),
            ("10.0.0.0/30", &["10.0.0.1", "10.0.0.2"], None),
            ("10.0.0.7/32", &[], Some("10.0.0.7")),
            ("10.0.0.7/32", &["10.0.0.7"], None),
            ("10.0.0.6/31", &["10.0.0.6"], Some("10.0.0.7")),
            ("fd00::/64", &[], Some("fd00::1")),
            ("fd00::1/128", &[], Some("fd00::1")),
        ] {
            let used = used.iter().map(|ip| ip.parse().unwrap());
            let got = next_ip(&net(prefix), used);
            assert_eq!(got, expected.map(|ip| ip.parse().unwrap()), "{prefix}");
        }
        assert!(!is_usable(&net("10.0.0.0/24"), "10.0.0.0".parse().unwrap()));
        assert!(!is_usable(
            &net("10.0.0.0/24"),
            "10.0.0.255".parse().unwrap()
        ));
        assert!(is_usable(
            &net("10.0.0.0/24"),
            "10.0.0.254".parse().unwrap()
        ));
    }

    #[test]
    fn counts() {
        assert_eq!(host_count(&net("10.0.0.0/24")), 254);
        assert_eq!(host_count(&net("fd00::/48")), u64::MAX);
        assert_eq!(prefix_count(&net("10.0.0.0/16"), 22), 64);
        assert_eq!(prefix_count(&net("10.0.0.0/24"), 22), 1);
        assert_eq!(next_number([1, 2, 4].into_iter(), 1, 9), Some(3));
        assert_eq!(next_number([1, 2, 3].into_iter(), 1, 3), None);
        assert_eq!(next_number([7].into_iter(), 1, 3), Some(1));
    }
}
