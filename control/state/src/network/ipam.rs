//! Allocation of prefixes, addresses and numbers: next fit, so that a released one is reused late.
//! The caller reads the used ones from the tables: there is no second list that could leak.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::network::entity::Family;

/// First and last address as numbers.
fn bounds(net: &IpNet) -> (u128, u128) {
    (to_number(net.network()), to_number(net.broadcast()))
}

/// An address as a number of its family.
pub(crate) fn to_number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// The address of a number.
pub(crate) fn to_ip(number: u128, family: Family) -> IpAddr {
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

/// `true` if the prefixes share an address.
pub(crate) fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

/// `true` if the prefix has no bits set beyond its length.
pub(crate) fn is_canonical(net: &IpNet) -> bool {
    net.addr() == net.network()
}

/// A range of numbers, both ends included.
pub(crate) type Range = (u128, u128);

/// The ranges in the order of a next-fit search: from behind `last` to the end, then from the
/// beginning. `None`, or a `last` outside of the ranges, starts at the beginning.
pub(crate) fn next_fit(ranges: &[Range], last: Option<u128>) -> Vec<Range> {
    let holds = |last: u128| {
        let at = ranges
            .iter()
            .position(|(from, to)| (*from..=*to).contains(&last))?;
        Some((at, last))
    };
    let Some((at, last)) = last.and_then(holds) else {
        return ranges.to_vec();
    };
    let (before, from) = ranges.split_at(at);
    let rest = from.first().filter(|(_, end)| last < *end);
    let mut order: Vec<Range> = rest.map(|(_, end)| (last + 1, *end)).into_iter().collect();
    order.extend_from_slice(from.get(1..).unwrap_or_default());
    order.extend_from_slice(before);
    order.extend(from.first());
    order
}

/// The first number of the ranges that is not taken.
pub(crate) fn first_free(ranges: &[Range], is_taken: impl Fn(u128) -> bool) -> Option<u128> {
    let mut numbers = ranges.iter().flat_map(|(first, last)| *first..=*last);
    numbers.find(|number| !is_taken(*number))
}

/// The next free prefix of a length inside one of the parents, and its last address, which is the
/// cursor of the next search. `None` means that no prefix is free.
pub(crate) fn carve(
    parents: &[IpNet],
    family: Family,
    length: u8,
    used: &[IpNet],
    last: Option<u128>,
) -> Option<(IpNet, u128)> {
    let of_family = |net: &&IpNet| Family::of_net(net) == family;
    let mut used: Vec<Range> = used.iter().filter(of_family).map(bounds).collect();
    used.sort_unstable();
    let parents: Vec<&IpNet> = parents
        .iter()
        .filter(of_family)
        .filter(|net| net.prefix_len() <= length)
        .collect();
    let host_bits = u32::from(parents.first()?.max_prefix_len().checked_sub(length)?);
    // A /0 of IPv6 has no representable size; it fits only when nothing is used.
    let size_less_one = 1u128
        .checked_shl(host_bits)
        .map_or(u128::MAX, |size| size - 1);
    let ranges: Vec<Range> = parents.into_iter().map(bounds).collect();
    let at = next_fit(&ranges, last)
        .into_iter()
        .find_map(|range| carve_one(range, size_less_one, &used))?;
    Some((to_net(at, length, family)?, at + size_less_one))
}

fn carve_one((first, last): Range, size_less_one: u128, used: &[Range]) -> Option<u128> {
    // The first aligned number of the range.
    let mut at = match first & size_less_one {
        0 => first,
        _ => (first | size_less_one).checked_add(1)?,
    };
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
    (at.checked_add(size_less_one)? <= last).then_some(at)
}

/// The addresses of each prefix of a family that hosts may have.
pub(crate) fn host_ranges(nets: &[IpNet], family: Family) -> Vec<Range> {
    let of_family = nets.iter().filter(|net| Family::of_net(net) == family);
    of_family.map(host_bounds).collect()
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

/// `true` if a host may have the address.
pub(crate) fn is_usable(net: &IpNet, ip: IpAddr) -> bool {
    let (first, last) = host_bounds(net);
    net.contains(&ip) && (first..=last).contains(&to_number(ip))
}

/// Number of addresses that hosts may have in a prefix; saturates.
pub(crate) fn host_count(net: &IpNet) -> u64 {
    let (first, last) = host_bounds(net);
    u64::try_from((last - first).saturating_add(1)).unwrap_or(u64::MAX)
}

/// Number of prefixes of a length in a prefix; saturates.
pub(crate) fn prefix_count(net: &IpNet, length: u8) -> u64 {
    let bits = u32::from(length.saturating_sub(net.prefix_len()));
    1u64.checked_shl(bits).unwrap_or(u64::MAX)
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
            let got = carved(parents, length, used, None);
            assert_eq!(got, expected.map(net), "{parents:?} /{length} {used:?}");
        }
        let v6 = |parent: &str, length, used: &[&str]| {
            let found = carve(&nets(&[parent]), Family::V6, length, &nets(used), None);
            found.map(|(net, _)| net)
        };
        assert_eq!(
            v6("fd00::/48", 64, &["fd00::/64"]),
            Some(net("fd00:0:0:1::/64"))
        );
        assert_eq!(v6("::/0", 0, &[]), Some(net("::/0")));
        assert_eq!(v6("::/0", 0, &["fd00::/64"]), None);
    }

    #[test]
    fn the_search_goes_on_behind_the_last_one() {
        let two = &["10.0.0.0/23", "10.1.0.0/23"][..];
        for (last, length, used, expected) in [
            ("10.0.0.255", 24, &[][..], Some("10.0.1.0/24")),
            ("10.0.1.255", 24, &[], Some("10.1.0.0/24")),
            ("10.1.1.255", 24, &[], Some("10.0.0.0/24")),
            (
                "10.1.0.255",
                24,
                &["10.1.1.0/24", "10.0.0.0/24"],
                Some("10.0.1.0/24"),
            ),
            ("10.0.0.3", 24, &[], Some("10.0.1.0/24")),
            ("10.0.0.3", 23, &[], Some("10.1.0.0/23")),
            ("10.0.0.3", 23, &["10.1.0.0/24"], Some("10.0.0.0/23")),
            ("192.0.2.1", 24, &[], Some("10.0.0.0/24")),
        ] {
            let got = carved(two, length, used, Some(last));
            assert_eq!(got, expected.map(net), "{last} /{length} {used:?}");
        }
        let ranges = [(1, 3), (7, 8)];
        assert_eq!(next_fit(&ranges, None), ranges);
        assert_eq!(next_fit(&ranges, Some(2)), [(3, 3), (7, 8), (1, 3)]);
        assert_eq!(next_fit(&ranges, Some(3)), [(7, 8), (1, 3)]);
        assert_eq!(next_fit(&ranges, Some(8)), [(1, 3), (7, 8)]);
        assert_eq!(next_fit(&ranges, Some(9)), ranges);
    }

    fn carved(parents: &[&str], length: u8, used: &[&str], last: Option<&str>) -> Option<IpNet> {
        let last = last.map(|ip| to_number(ip.parse().unwrap()));
        let found = carve(&nets(parents), Family::V4, length, &nets(used), last);
        found.map(|(net, _)| net)
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
            let used: Vec<IpAddr> = used.iter().map(|ip| ip.parse().unwrap()).collect();
            let family = Family::of_net(&net(prefix));
            let ranges = host_ranges(&[net(prefix)], family);
            let got = first_free(&ranges, |at| used.contains(&to_ip(at, family)));
            let got = got.map(|at| to_ip(at, family));
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
    }
}
