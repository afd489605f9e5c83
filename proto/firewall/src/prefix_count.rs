use ipnet::IpNet;

use crate::address_range::AddressRange;
use crate::prefixes::is_ipv4;

/// Numbers of prefixes of each family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixCount {
    /// IPv4 prefixes.
    pub(crate) ipv4: usize,
    /// IPv6 prefixes.
    pub(crate) ipv6: usize,
}

impl PrefixCount {
    /// Those of every address.
    pub(crate) const ANY: Self = Self { ipv4: 1, ipv6: 1 };

    /// Those of a list.
    pub(crate) fn of_prefixes(prefixes: &[IpNet]) -> Self {
        let ipv4 = prefixes.iter().filter(|prefix| is_ipv4(prefix)).count();
        Self {
            ipv4,
            ipv6: prefixes.len() - ipv4,
        }
    }

    /// Those that make up ranges, without making them.
    pub(crate) fn of_ranges(ranges: &[AddressRange]) -> Self {
        let mut count = Self::default();
        for range in ranges {
            let family = match range.is_ipv4() {
                true => &mut count.ipv4,
                false => &mut count.ipv6,
            };
            *family = family.saturating_add(range.prefix_count());
        }
        count
    }

    /// Those of both families.
    pub(crate) fn total(self) -> usize {
        self.ipv4.saturating_add(self.ipv6)
    }
}
