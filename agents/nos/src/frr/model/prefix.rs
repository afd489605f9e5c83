//! Entries of prefix lists.

use std::fmt;

use ipnet::IpNet;

use super::name::ObjectName;

/// The prefixes inside one prefix whose length is in a range.
///
/// One meaning has one value: `ge` and `le` are the range, host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixRule {
    prefix: IpNet,
    shortest: u8,
    longest: u8,
}

/// One permission of a prefix list. The family of the prefix is the family of the list: IPv4 and
/// IPv6 lists of one name are two lists.
///
/// A list is a set of permissions, and denies everything else. Its order therefore means nothing,
/// and sequence numbers are FRR's affair.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixEntry {
    /// Name of the list.
    pub list: ObjectName,
    /// The permitted prefixes.
    pub rule: PrefixRule,
}

/// Name of a prefix list. Lists of the two families have separate names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixListKey {
    /// `true` for a list of IPv6 prefixes.
    pub ipv6: bool,
    /// Name.
    pub list: ObjectName,
}

impl PrefixRule {
    /// Permits exactly this prefix.
    #[must_use]
    pub fn exact(prefix: IpNet) -> Self {
        Self {
            prefix: prefix.trunc(),
            shortest: prefix.prefix_len(),
            longest: prefix.prefix_len(),
        }
    }

    /// Permits this prefix and every prefix inside it, down to a single address.
    #[must_use]
    pub fn or_longer(prefix: IpNet) -> Self {
        Self {
            longest: prefix.max_prefix_len(),
            ..Self::exact(prefix)
        }
    }

    /// Permits the prefixes inside `prefix` with a length from `shortest` to `longest`. `None` if
    /// that is no range, or reaches beyond the prefix or the family's length.
    #[must_use]
    pub fn range(prefix: IpNet, shortest: u8, longest: u8) -> Option<Self> {
        let ok = prefix.prefix_len() <= shortest
            && shortest <= longest
            && longest <= prefix.max_prefix_len();
        ok.then(|| Self {
            shortest,
            longest,
            ..Self::exact(prefix)
        })
    }

    /// Prefix that every permitted one is inside.
    #[must_use]
    pub fn prefix(&self) -> IpNet {
        self.prefix
    }

    /// Length of the longest permitted prefix, bits. `None` if the shortest has another length.
    pub(crate) fn longest_from(&self, shortest: u8) -> Option<u8> {
        (self.shortest == shortest).then_some(self.longest)
    }

    /// Reads FRR's words after `permit`. `None` if they are none.
    pub(crate) fn parse(words: &[&str], ipv6: bool) -> Option<Self> {
        let (prefix, rest) = words.split_first()?;
        let any = if ipv6 { "::/0" } else { "0.0.0.0/0" };
        if *prefix == "any" && rest.is_empty() {
            return Some(Self::or_longer(any.parse().ok()?));
        }
        let prefix: IpNet = prefix.parse().ok()?;
        if matches!(prefix, IpNet::V6(_)) != ipv6 {
            return None;
        }
        let (own, max) = (prefix.prefix_len(), prefix.max_prefix_len());
        let (shortest, longest) = match rest {
            [] => (own, own),
            ["le", le] => (own, le.parse().ok()?),
            ["ge", ge] => (ge.parse().ok()?, max),
            ["ge", ge, "le", le] | ["le", le, "ge", ge] => (ge.parse().ok()?, le.parse().ok()?),
            _ => return None,
        };
        Self::range(prefix, shortest, longest)
    }
}

impl PrefixEntry {
    /// `true` for an entry of an IPv6 list.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        matches!(self.rule.prefix, IpNet::V6(_))
    }

    /// The list of the entry.
    #[must_use]
    pub fn key(&self) -> PrefixListKey {
        PrefixListKey {
            ipv6: self.is_ipv6(),
            list: self.list.clone(),
        }
    }
}

impl PrefixListKey {
    /// Number of the last entry of a list, which denies everything.
    pub(crate) const LAST: u32 = u32::MAX;

    /// FRR's word for the family.
    pub(crate) fn ip(&self) -> &'static str {
        if self.ipv6 { "ipv6" } else { "ip" }
    }
}

impl fmt::Display for PrefixRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, max) = (self.prefix.prefix_len(), self.prefix.max_prefix_len());
        if own == 0 && self.shortest == 0 && self.longest == max {
            return f.write_str("any");
        }
        self.prefix.fmt(f)?;
        if self.shortest > own {
            write!(f, " ge {}", self.shortest)?;
        }
        // A lone `ge` reaches to the family's length by itself.
        let implied = if self.shortest > own { max } else { own };
        if self.longest != implied {
            write!(f, " le {}", self.longest)?;
        }
        Ok(())
    }
}
