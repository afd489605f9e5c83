use std::collections::BTreeSet;

use crate::{ENTRIES_TOTAL_MAX, NAMES_TOTAL_MAX, NamePattern, RuleOwner};

/// A part of the bounds of a firewall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleShare {
    /// Entries in the kernel.
    pub entries: usize,
    /// Different names and patterns of the DNS.
    pub names: usize,
}

impl RuleShare {
    /// All of a firewall's bounds.
    pub const FIREWALL: Self = Self {
        entries: ENTRIES_TOTAL_MAX,
        names: NAMES_TOTAL_MAX,
    };
    /// Without a bound, to count.
    pub(crate) const ENDLESS: Self = Self {
        entries: usize::MAX,
        names: usize::MAX,
    };

    /// The share of an owner, for all its sets that a firewall gets. Both together are the whole, and
    /// neither can use up the other's. A project has most rules; those of an operator are for many
    /// firewalls, and few.
    #[must_use]
    pub const fn of(owner: RuleOwner) -> Self {
        let operators = Self {
            entries: ENTRIES_TOTAL_MAX / 4,
            names: NAMES_TOTAL_MAX / 4,
        };
        match owner {
            RuleOwner::Operator => operators,
            RuleOwner::Tenant => Self {
                entries: ENTRIES_TOTAL_MAX - operators.entries,
                names: NAMES_TOTAL_MAX - operators.names,
            },
        }
    }
}

/// The need of a set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetSize {
    /// Entries in the kernel.
    pub entries: usize,
    /// Names and patterns of the DNS, each once.
    pub names: BTreeSet<NamePattern>,
}

#[cfg(test)]
mod tests {
    use super::RuleShare;
    use crate::RuleOwner;

    #[test]
    fn the_shares_are_the_whole() {
        let [operator, tenant] = [RuleOwner::Operator, RuleOwner::Tenant].map(RuleShare::of);
        assert_eq!((operator.entries, tenant.entries), (131_072, 393_216));
        assert_eq!((operator.names, tenant.names), (128, 384));
        let whole = RuleShare::FIREWALL;
        assert_eq!(operator.entries + tenant.entries, whole.entries);
        assert_eq!(operator.names + tenant.names, whole.names);
    }
}
