//! The operator's sets of shared networks, which are for the firewalls of other projects too.
//!
//! A firewall may be in shared networks of several projects. The contents of all operator's sets that
//! it gets are bounded together, so that its desired state fits one message: when one is written
//! ([`check_firewalls`](super::contents::check_firewalls)), and when a firewall joins networks.

use proto_errors::{Error, ErrorCode};
use proto_firewall::RuleOwner;

use crate::firewall::entity::{FirewallRuleSet, RuleSetKey, RuleTarget};
use crate::firewall::read::CONTENTS_BYTES_MAX;
use crate::machine::entity::AllocationNetwork;
use crate::reply::CheckResult;
use crate::tables::Tables;

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
