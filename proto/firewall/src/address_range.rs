use ipnet::{IpNet, IpSubnets, Ipv4Subnets, Ipv6Subnets};

/// Addresses of one family from the first to the last. Ranges are sorted by family and address, IPv4
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressRange {
    is_ipv6: bool,
    first: u128,
    last: u128,
}

impl AddressRange {
    /// The addresses of a prefix.
    pub(crate) fn of(prefix: &IpNet) -> Self {
        match prefix {
            IpNet::V4(net) => Self {
                is_ipv6: false,
                first: u32::from(net.network()).into(),
                last: u32::from(net.broadcast()).into(),
            },
            IpNet::V6(net) => Self {
                is_ipv6: true,
                first: net.network().into(),
                last: net.broadcast().into(),
            },
        }
    }

    /// `true` if the addresses are of IPv4.
    pub(crate) fn is_ipv4(self) -> bool {
        !self.is_ipv6
    }

    /// The addresses of the range that are in none of `excepted`: at most one range more than there
    /// are exceptions. Sorts the exceptions and walks the gaps between them.
    pub(crate) fn without(self, excepted: &[IpNet]) -> Vec<Self> {
        let mut cuts: Vec<Self> = excepted.iter().map(Self::of).collect();
        cuts.sort_unstable();
        let mut gaps = Vec::with_capacity(cuts.len() + 1);
        // `None` after the last address of all.
        let mut next = Some(self.first);
        for cut in cuts.iter().filter(|cut| cut.is_ipv6 == self.is_ipv6) {
            let Some(first) = next.filter(|next| *next <= self.last.min(cut.last)) else {
                continue;
            };
            if cut.first > self.last {
                break;
            }
            if let Some(last) = cut.first.checked_sub(1).filter(|last| *last >= first) {
                gaps.push(Self {
                    first,
                    last,
                    ..self
                });
            }
            next = cut.last.checked_add(1);
        }
        if let Some(first) = next.filter(|next| *next <= self.last) {
            gaps.push(Self { first, ..self });
        }
        gaps
    }

    /// `true` if every address of `inner` is in the range.
    fn contains(&self, inner: &Self) -> bool {
        self.is_ipv6 == inner.is_ipv6 && self.first <= inner.first && inner.last <= self.last
    }

    /// Number of the prefixes that make up the range, without making them.
    pub(crate) fn prefix_count(self) -> usize {
        aligned_blocks(self.first, self.last)
    }

    /// The fewest prefixes that make up the range, sorted, each made when it is asked for.
    pub(crate) fn prefixes(self) -> IpSubnets {
        let Self { first, last, .. } = self;
        if self.is_ipv6 {
            return IpSubnets::V6(Ipv6Subnets::new(first.into(), last.into(), 0));
        }
        // Both ends came from IPv4 addresses.
        let [first, last] = [first, last].map(|end| u32::try_from(end).unwrap_or(u32::MAX));
        IpSubnets::V4(Ipv4Subnets::new(first.into(), last.into(), 0))
    }
}

/// Number of the largest aligned blocks that make up the numbers from `first` to `last`.
pub(crate) fn aligned_blocks(first: u128, last: u128) -> usize {
    // `None` is the number after the last of all.
    let count = match last.checked_add(1) {
        None if first == 0 => 1,
        None => first.wrapping_neg().count_ones(),
        Some(end) => {
            // Blocks grow up to the most aligned number of the range, and shrink after it: each
            // length occurs once on a side, so that the set bits of a distance are its blocks.
            let bit = (first ^ end).checked_ilog2().unwrap_or(0);
            let middle = (end >> bit) << bit;
            let sides = [middle.wrapping_sub(first), end - middle];
            sides.iter().map(|side| side.count_ones()).sum()
        }
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Every address of both families.
pub(crate) fn every_address() -> Vec<AddressRange> {
    crate::prefixes::any()
        .iter()
        .map(AddressRange::of)
        .collect()
}

/// Sorts ranges, and merges those that overlap or adjoin.
pub(crate) fn merged_ranges(mut ranges: Vec<AddressRange>) -> Vec<AddressRange> {
    ranges.sort_unstable();
    let mut merged: Vec<AddressRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(before)
                if before.is_ipv6 == range.is_ipv6
                    && range.first <= before.last.saturating_add(1) =>
            {
                before.last = before.last.max(range.last);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// `true` if one of the ranges has every address of `inner`. They are sorted and do not adjoin.
pub(crate) fn is_covered(inner: &AddressRange, ranges: &[AddressRange]) -> bool {
    let after = ranges
        .partition_point(|range| (range.is_ipv6, range.first) <= (inner.is_ipv6, inner.first));
    let before = after.checked_sub(1).and_then(|at| ranges.get(at));
    before.is_some_and(|range| range.contains(inner))
}

/// The prefixes of ranges, sorted.
pub(crate) fn prefixes(ranges: &[AddressRange]) -> Vec<IpNet> {
    ranges.iter().flat_map(|range| range.prefixes()).collect()
}

/// A prefix of `named` with an address that is in none of `outer`. `None` if there is none.
pub(crate) fn outside(named: &[AddressRange], outer: &[IpNet]) -> Option<IpNet> {
    // Together, prefixes that adjoin may contain what none of them does alone.
    let outer = merged_ranges(outer.iter().map(AddressRange::of).collect());
    let found = named.iter().find(|range| !is_covered(range, &outer))?;
    let mut prefixes = found.prefixes();
    prefixes.find(|net| !is_covered(&AddressRange::of(net), &outer))
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, aligned_blocks};

    #[test]
    fn prefixes_are_counted_without_making_them() {
        for first in 0..40 {
            for last in first..80 {
                let range = AddressRange {
                    is_ipv6: false,
                    first,
                    last,
                };
                let made = range.prefixes().count();
                assert_eq!(range.prefix_count(), made, "{first}-{last}");
            }
        }
        for (first, last, expected) in [
            (0, u128::MAX, 1),
            (1, u128::MAX, 128),
            (0, u128::MAX - 1, 128),
            (1, u128::MAX - 1, 254),
            (u128::MAX, u128::MAX, 1),
            (1 << 127, u128::MAX, 1),
        ] {
            assert_eq!(aligned_blocks(first, last), expected, "{first}-{last}");
        }
    }
}
