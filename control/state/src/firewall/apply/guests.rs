//! The operator's sets of shared networks, which are for the firewalls of other projects too.
//!
//! A firewall may be in shared networks of several projects. The contents of all operator's sets that
//! it gets are bounded together, so that its desired state fits one message: when one is written, and
//! when a firewall joins networks.

use proto_errors::{Error, ErrorCode};
use proto_firewall::RuleOwner;
use proto_types::ProjectId;

use crate::firewall::entity::{FirewallRuleSet, RuleSetKey, RuleTarget};
use crate::firewall::read::{CONTENTS_BYTES_MAX, firewalls_of_set, rule_sets_of_firewall};
use crate::machine::entity::AllocationNetwork;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Refuses a write of the operator with which a firewall would get more contents than fit. One that
/// has no more than before is a way back, and is not refused.
pub(super) fn check_contents(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    bytes: u64,
) -> CheckResult {
    let before = tables.get::<FirewallRuleSet>(set);
    let before = before.map_or(0, |row| row.current.bytes);
    // A project's own sets are bounded for the whole project.
    if set.owner != RuleOwner::Operator || bytes <= before {
        return Ok(());
    }
    for firewall in firewalls_of_set(tables, set, project) {
        let others = rule_sets_of_firewall(tables, firewall).into_iter();
        let others = others.filter(|row| row.set.owner == set.owner && row.set != *set);
        let used: u64 = others.map(|row| row.current.bytes).sum();
        if used + bytes > CONTENTS_BYTES_MAX {
            let message = format!(
                "the operator's firewall rules of firewall \"{firewall}\" would have {} bytes, and may \
                 have {CONTENTS_BYTES_MAX}",
                used + bytes
            );
            let error = Error::new(ErrorCode::TooMany, message).object("firewall", firewall);
            return Err(error.hint(HINT));
        }
    }
    Ok(())
}

/// Refuses a firewall in networks of which the operator's sets together do not fit.
pub(crate) fn check_joined(tables: &Tables, networks: &[AllocationNetwork]) -> CheckResult {
    let private = networks.iter().filter(|network| network.kind.is_child());
    let sets = private.filter_map(|network| {
        tables.get::<FirewallRuleSet>(&RuleSetKey {
            target: RuleTarget::Network(network.network.clone()),
            owner: RuleOwner::Operator,
        })
    });
    let bytes: u64 = sets.map(|row| row.current.bytes).sum();
    if bytes <= CONTENTS_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the operator's firewall rules of these networks have {bytes} bytes together, and a firewall \
         takes {CONTENTS_BYTES_MAX}"
    );
    Err(Error::new(ErrorCode::TooMany, message)
        .hint("join fewer shared networks, or ask the operator"))
}

/// The remedy for a write.
const HINT: &str = "use fewer or wider rules, or delete sets that no longer serve: metalmesh firewall \
                    rules ls --operator";
