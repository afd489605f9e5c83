//! The bounds of an owner's contents in force: in a project, and in a firewall.
//!
//! The shares of operator and project are apart: neither can use up the other's. A write that does not
//! make the contents longer is a way back, and is never refused.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_firewall::RuleOwner;
use proto_types::ProjectId;

use crate::firewall::entity::{FirewallRuleSet, RuleSetKey, RuleTarget};
use crate::firewall::read::{CONTENTS_BYTES_MAX, firewalls_of_set, rule_sets_of_firewall};
use crate::firewall::replacement::replaced_firewall;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Refuses a write with which an owner's sets of a project would pass their bound.
///
/// A firewall and its replacement count as one, by the larger set of both, and a copy that was left
/// over does not count: otherwise a project could use up the operator's bound by replacements, and no
/// firewall with long sets could be replaced. Each firewall is bounded by itself ([`check_firewalls`]).
pub(super) fn check_project(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    bytes: u64,
) -> CheckResult {
    let others = contents_of_others(tables, set, project);
    let target = counted_with(tables, &set.target);
    let beside = others.get(&target).copied().unwrap_or_default();
    let rest = others.values().sum::<u64>() - beside;
    let current = tables.get::<FirewallRuleSet>(set);
    let counted = current.filter(|row| !row.left_over);
    let before = rest + beside.max(counted.map_or(0, |row| row.current.bytes));
    let after = rest + beside.max(bytes);
    if after <= CONTENTS_BYTES_MAX || after <= before {
        return Ok(());
    }
    let owner = set.owner;
    let message = format!(
        "the {owner}'s firewall rules of project \"{project}\" would have {after} bytes, and may have \
         {CONTENTS_BYTES_MAX}"
    );
    let error = Error::new(ErrorCode::TooMany, message).object("project", project);
    Err(error.hint(hint(owner)))
}

/// Lengths of an owner's contents in a project, without those of one set, by what they count with.
fn contents_of_others(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
) -> BTreeMap<RuleTarget, u64> {
    let mut lengths = BTreeMap::new();
    let rows = tables.all::<FirewallRuleSet>();
    let others = rows.filter(|row| {
        row.project == project && row.set.owner == set.owner && row.set != *set && !row.left_over
    });
    for row in others {
        let target = counted_with(tables, &row.set.target);
        let length: &mut u64 = lengths.entry(target).or_default();
        *length = row.current.bytes.max(*length);
    }
    lengths
}

/// The target that a set counts with: that of the firewall which its own firewall replaces, or its own.
fn counted_with(tables: &Tables, target: &RuleTarget) -> RuleTarget {
    let replaced = match target {
        RuleTarget::Firewall(id) => replaced_firewall(tables, *id),
        RuleTarget::Network(_) => None,
    };
    replaced.map_or_else(
        || target.clone(),
        |replaced| RuleTarget::Firewall(replaced.machine),
    )
}

/// Refuses a write with which a firewall would get more contents of an owner than fit its desired
/// state. Sets of shared networks are of other projects, and copies do not count in their project.
pub(super) fn check_firewalls(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    bytes: u64,
) -> CheckResult {
    let before = tables.get::<FirewallRuleSet>(set);
    if bytes <= before.map_or(0, |row| row.current.bytes) {
        return Ok(());
    }
    let owner = set.owner;
    for firewall in firewalls_of_set(tables, set, project) {
        let others = rule_sets_of_firewall(tables, firewall).into_iter();
        let others = others.filter(|row| row.set.owner == owner && row.set != *set);
        let used: u64 = others.map(|row| row.current.bytes).sum();
        if used + bytes > CONTENTS_BYTES_MAX {
            let message = format!(
                "the {owner}'s firewall rules of firewall \"{firewall}\" would have {} bytes, and may \
                 have {CONTENTS_BYTES_MAX}",
                used + bytes
            );
            let error = Error::new(ErrorCode::TooMany, message).object("firewall", firewall);
            return Err(error.hint(hint(owner)));
        }
    }
    Ok(())
}

/// The remedy.
fn hint(owner: RuleOwner) -> &'static str {
    match owner {
        RuleOwner::Operator => {
            "use fewer or wider rules, or delete sets that no longer serve: metalmesh firewall rules ls \
             --operator"
        }
        RuleOwner::Tenant => {
            "use fewer or wider rules, or delete sets that no longer serve: metalmesh firewall rules ls"
        }
    }
}
