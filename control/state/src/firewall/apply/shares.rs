//! The shares of the owners of rules in the bounds of a firewall.
//!
//! A firewall has room for so many entries and names. Operator and project have a share of it each,
//! which neither can use up for the other. All sets of an owner that a firewall gets are in its share:
//! a set of a network counts in every firewall that gets it.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::{Error, ErrorCode};
use proto_firewall::{RuleContent, RuleScope, RuleShare, SetSize, set_size};
use proto_types::{MachineId, ProjectId};

use crate::firewall::entity::{FirewallRuleSet, RuleSetKey, RuleTarget};
use crate::firewall::read::{firewalls_of_set, rule_sets_of_firewall};
use crate::network::entity::Network;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Sets that one error names, the largest first; the rest is counted.
const SETS_NAMED: usize = 8;

/// A bound of a firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Entries,
    Names,
}

/// The sets of an owner in a firewall, as they would be after a write, with the size of each.
type FirewallSets<'a> = BTreeMap<&'a RuleSetKey, SetSize>;

/// The scope of a set.
pub(super) fn scope<'a>(tables: &'a Tables, set: &RuleSetKey) -> RuleScope<'a> {
    let network = match &set.target {
        RuleTarget::Firewall(_) => None,
        RuleTarget::Network(id) => tables.get::<Network>(id),
    };
    RuleScope {
        owner: set.owner,
        network: network.map(|network| network.prefixes.as_slice()),
    }
}

/// Refuses a content with which the sets of its owner would pass the owner's share of a firewall. One
/// with which they need no more than before is never refused: it may be a way back into the share,
/// which was passed because a firewall joined more networks.
pub(super) fn check(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    content: &RuleContent,
) -> CheckResult {
    let share = RuleShare::of(set.owner);
    // Several firewalls get the same sets of networks: each is counted once.
    let mut known = FirewallSets::new();
    for firewall in firewalls_of_set(tables, set, project) {
        let mut others = rule_sets_of_firewall(tables, firewall);
        others.retain(|row| row.set.owner == set.owner && row.set != *set);
        if others.is_empty() {
            // The validator has compared the need of the set alone with the share.
            continue;
        }
        let own = known.entry(set);
        let own = own.or_insert_with(|| set_size(content, scope(tables, set)));
        let mut sets = FirewallSets::from([(set, own.clone())]);
        for row in others {
            let size = known.entry(&row.set);
            let size = size.or_insert_with(|| size_of(tables, row));
            sets.insert(&row.set, size.clone());
        }
        for bound in [Bound::Entries, Bound::Names] {
            let together = bound.together(&sets);
            let over = together.saturating_sub(bound.of_share(share));
            if over > 0 && together > bound.together(&before(tables, set, &sets)) {
                return Err(refusal(set, firewall, bound, &sets, over));
            }
        }
    }
    Ok(())
}

/// The sets of a firewall with the revision of one that is in force.
fn before<'a>(tables: &Tables, set: &'a RuleSetKey, sets: &FirewallSets<'a>) -> FirewallSets<'a> {
    let mut sets = sets.clone();
    sets.remove(set);
    let current = tables.get::<FirewallRuleSet>(set);
    sets.extend(current.map(|row| (set, size_of(tables, row))));
    sets
}

fn size_of(tables: &Tables, row: &FirewallRuleSet) -> SetSize {
    set_size(&row.current.content, scope(tables, &row.set))
}

impl Bound {
    fn of(self, size: &SetSize) -> usize {
        match self {
            Self::Entries => size.entries,
            Self::Names => size.names.len(),
        }
    }

    fn of_share(self, share: RuleShare) -> usize {
        match self {
            Self::Entries => share.entries,
            Self::Names => share.names,
        }
    }

    /// The need of all sets together: a name that several have counts once.
    fn together(self, sets: &FirewallSets<'_>) -> usize {
        match self {
            Self::Entries => sets.values().map(|size| size.entries).sum(),
            Self::Names => {
                let names = sets.values().flat_map(|size| &size.names);
                names.collect::<BTreeSet<_>>().len()
            }
        }
    }

    /// Name in errors, and the remedy.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Entries => (
                "entries",
                "use shorter prefixes or fewer ports, or delete sets that no longer serve: \
                 metalmesh firewall rules ls",
            ),
            Self::Names => ("DNS names", "use patterns, or fewer names"),
        }
    }
}

fn refusal(
    set: &RuleSetKey,
    firewall: MachineId,
    bound: Bound,
    sets: &FirewallSets<'_>,
    over: usize,
) -> Error {
    let (what, hint) = bound.words();
    let mut sizes: Vec<(usize, &RuleSetKey)> = sets
        .iter()
        .map(|(key, size)| (bound.of(size), *key))
        .filter(|(size, _)| *size > 0)
        .collect();
    sizes.sort_by(|one, other| other.cmp(one));
    let more = sizes.len().saturating_sub(SETS_NAMED);
    let named = sizes.iter().take(SETS_NAMED);
    let mut parts: Vec<String> = named.map(|(size, key)| format!("{key} {size}")).collect();
    if more > 0 {
        parts.push(format!("{more} more sets"));
    }
    let owner = set.owner;
    let (together, share) = (bound.together(sets), bound.of_share(RuleShare::of(owner)));
    let message = format!(
        "the {owner}'s firewall rules of firewall \"{firewall}\" would have {together} {what}, {over} \
         above the {owner}'s share of {share}: {}",
        parts.join(", ")
    );
    Error::new(ErrorCode::TooMany, message)
        .object("firewall", firewall)
        .hint(hint)
}
