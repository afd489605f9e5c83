//! Sets of prefixes as disjoint lists.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::address_range::{self, AddressRange};

/// Every address of both families.
#[must_use]
pub fn any() -> Vec<IpNet> {
    vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())]
}

/// `true` if the prefix is for IPv4.
#[must_use]
pub fn is_ipv4(prefix: &IpNet) -> bool {
    matches!(prefix, IpNet::V4(_))
}

/// `true` if every address of `inner` is in `outer`.
#[must_use]
pub fn contains(outer: &IpNet, inner: &IpNet) -> bool {
    is_ipv4(outer) == is_ipv4(inner)
        && outer.prefix_len() <= inner.prefix_len()
        && outer.contains(&inner.addr())
}

/// The addresses of `prefix` that are in none of `excepted`, as the fewest disjoint prefixes: at most
/// twice the length of an address for each exception.
#[must_use]
pub fn subtract(prefix: &IpNet, excepted: &[IpNet]) -> Vec<IpNet> {
    address_range::prefixes(&AddressRange::of(prefix).without(excepted))
}

/// Sorts the prefixes, and merges those that overlap or adjoin.
#[must_use]
pub fn merged(prefixes: &[IpNet]) -> Vec<IpNet> {
    IpNet::aggregate(&prefixes.to_vec())
}

/// A prefix of `named` with an address that is in none of `outer`. `None` if there is none.
#[must_use]
pub fn outside(named: &[IpNet], outer: &[IpNet]) -> Option<IpNet> {
    let named: Vec<AddressRange> = named.iter().map(AddressRange::of).collect();
    address_range::outside(&named, outer)
}

#[cfg(test)]
mod tests {
    use super::{any, merged, outside, subtract};
    use ipnet::IpNet;

    fn nets(text: &str) -> Vec<IpNet> {
        text.split_whitespace()
            .map(|net| net.parse().unwrap())
            .collect()
    }

    #[test]
    fn exceptions_are_cut_out() {
        for (prefix, excepted, expected) in [
            ("10.0.0.0/8", "", "10.0.0.0/8"),
            ("10.0.0.0/8", "11.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/8", "10.0.0.0/8", ""),
            ("10.0.0.0/8", "0.0.0.0/0", ""),
            ("10.0.0.0/8", "::/0", "10.0.0.0/8"),
            ("10.0.0.0/30", "10.0.0.1/32", "10.0.0.0/32 10.0.0.2/31"),
            ("0.0.0.0/0", "255.255.255.255/32 0.0.0.0/1 128.0.0.0/1", ""),
            ("0.0.0.0/0", "128.0.0.0/1", "0.0.0.0/1"),
            ("::/0", "::/1 ::/2 8000::/2", "c000::/2"),
            (
                "10.0.0.0/30",
                "10.0.0.0/31 10.0.0.0/32 9.0.0.0/8",
                "10.0.0.2/31",
            ),
            ("10.0.0.0/30", "10.0.0.1/32 10.0.0.2/31", "10.0.0.0/32"),
            ("fd00::/126", "fd00::3/128", "fd00::/127 fd00::2/128"),
        ] {
            let rest = subtract(&prefix.parse().unwrap(), &nets(excepted));
            assert_eq!(rest, nets(expected), "{prefix} without {excepted}");
        }
    }

    #[test]
    fn prefixes_are_merged() {
        assert_eq!(
            merged(&nets("10.0.0.0/9 10.128.0.0/9 10.1.0.0/16")),
            nets("10.0.0.0/8")
        );
        assert_eq!(merged(&any()), any());
    }

    #[test]
    fn prefixes_outside_of_others() {
        for (named, outer, expected) in [
            ("10.1.0.0/16", "10.0.0.0/8", ""),
            ("10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/8"),
            ("10.0.0.0/8 fd00::/8", "10.0.0.0/8", "fd00::/8"),
            ("10.0.0.0/8", "0.0.0.0/0 ::/0", ""),
            ("10.0.0.0/31", "10.0.0.0/32 10.0.0.1/32", ""),
            ("10.0.0.0/30", "10.0.0.0/32 10.0.0.1/32", "10.0.0.0/30"),
            ("10.0.0.0/30", "10.0.0.2/31 10.0.0.0/31 10.0.0.0/32", ""),
            ("9.0.0.0/8 10.0.0.0/8", "9.0.0.0/8 11.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/8", "", "10.0.0.0/8"),
            ("", "10.0.0.0/8", ""),
        ] {
            let found: Vec<IpNet> = outside(&nets(named), &nets(outer)).into_iter().collect();
            assert_eq!(found, nets(expected), "{named} in {outer}");
        }
    }
}
