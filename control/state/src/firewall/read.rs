//! Reads of firewall rules.

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use proto_firewall::{RuleContent, RuleOwner};
use proto_types::{MachineId, NetworkId, ProjectId};

use crate::firewall::command::ReportFirewall;
use crate::firewall::entity::{
    FirewallRuleHistory, FirewallRuleSet, FirewallStatus, RuleHistoryKey, RuleSetKey, RuleTarget,
};
use crate::machine::entity::{Allocation, AllocationType, Machine};
use crate::network::entity::Ip;
use crate::tables::Tables;

/// Longest content of a set of rules in storage, bytes. A longer one is refused. About 20,000 rules.
pub(crate) const CONTENT_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Longest contents in force of all sets of one owner in one project, and in one firewall, bytes. A
/// write beyond it is refused. The desired state of a firewall has those of both
/// owners, and fits one message of the link.
pub(crate) const CONTENTS_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most revisions of a set, the one in force included. The oldest goes.
pub(crate) const HISTORY_REVISIONS_MAX: usize = 50;
/// Longest earlier contents of a set, bytes. The oldest goes.
pub(crate) const HISTORY_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Both owners, in the order in which their rules decide.
pub(crate) const fn owners() -> [RuleOwner; 2] {
    [RuleOwner::Operator, RuleOwner::Tenant]
}

/// Length of a content in storage, bytes.
pub(crate) fn content_bytes(content: &RuleContent) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match ciborium::into_writer(content, &mut count) {
        Ok(()) => count.0,
        // Counting does not fail; a content that cannot be encoded is beyond every bound.
        Err(_) => u64::MAX,
    }
}

/// The allocation of a machine as a firewall. `None` means that it is none.
pub fn firewall_allocation(tables: &Tables, id: MachineId) -> Option<&Allocation> {
    let machine = tables.get::<Machine>(&id)?;
    let allocation = machine.allocation.as_ref()?;
    (allocation.kind == AllocationType::Firewall).then_some(allocation)
}

/// `true` if the project has the address in the network.
pub(crate) fn has_address(tables: &Tables, project: ProjectId, network: &str, text: &str) -> bool {
    let Ok(address) = text.parse::<IpAddr>() else {
        return false;
    };
    let keys = tables.index().project_ips.get(&project);
    let mut rows = keys
        .into_iter()
        .flatten()
        .filter_map(|key| tables.get::<Ip>(key));
    rows.any(|ip| ip.ip == address && ip.network.as_str() == network)
}

/// Range of the keys of a set's earlier revisions.
pub(crate) fn history_range(set: &RuleSetKey) -> RangeInclusive<RuleHistoryKey> {
    let key = |number| RuleHistoryKey {
        set: set.clone(),
        number,
    };
    key(0)..=key(u64::MAX)
}

/// The earlier revisions of a set, the newest first.
pub fn rule_history<'a>(
    tables: &'a Tables,
    set: &'a RuleSetKey,
) -> impl Iterator<Item = &'a Arc<FirewallRuleHistory>> {
    let rows = tables.table::<FirewallRuleHistory>();
    let rows = rows.range(history_range(set)).rev();
    rows.map(|(_, slot)| &slot.value)
}

/// Firewalls in a network: those of one project, or with `None` those of all.
pub(crate) fn firewalls_in<'a>(
    tables: &'a Tables,
    network: &NetworkId,
    project: Option<ProjectId>,
) -> impl Iterator<Item = MachineId> + 'a {
    let found = tables.index().network_firewalls.get(network);
    let found = found.into_iter().flatten();
    let mine = found.filter(move |(owner, _)| project.is_none_or(|project| project == *owner));
    mine.map(|(_, firewall)| *firewall)
}

/// The firewalls that a set of rules of a project is for: its own, and for the operator's set of a
/// network that projects share those of the others too.
pub fn firewalls_of_set(tables: &Tables, set: &RuleSetKey, project: ProjectId) -> Vec<MachineId> {
    match &set.target {
        RuleTarget::Firewall(id) => vec![*id],
        RuleTarget::Network(id) => {
            let only = (set.owner == RuleOwner::Tenant).then_some(project);
            firewalls_in(tables, id, only).collect()
        }
    }
}

/// `true` if a set is for the firewalls of other projects in its network too: what the operator says
/// about a shared network holds for whoever joins it.
fn is_for_guests(set: &RuleSetKey) -> bool {
    set.owner == RuleOwner::Operator && matches!(set.target, RuleTarget::Network(_))
}

/// Keys of the sets that a firewall may get, in the order in which they decide: the operator's
/// before the project's, its own before those of its private networks.
pub(crate) fn rule_set_keys(allocation: &Allocation, machine: MachineId) -> Vec<RuleSetKey> {
    let networks = allocation
        .networks
        .iter()
        .filter(|network| network.kind.is_child());
    let networks = networks.map(|network| RuleTarget::Network(network.network.clone()));
    let targets: Vec<RuleTarget> = std::iter::once(RuleTarget::Firewall(machine))
        .chain(networks)
        .collect();
    let keys = owners().into_iter().flat_map(|owner| {
        let targets = targets.iter().cloned();
        targets.map(move |target| RuleSetKey { target, owner })
    });
    keys.collect()
}

/// Sets that a firewall gets, in the order in which they decide.
pub fn rule_sets_of_firewall(tables: &Tables, machine: MachineId) -> Vec<&Arc<FirewallRuleSet>> {
    let Some(allocation) = firewall_allocation(tables, machine) else {
        return Vec::new();
    };
    let keys = rule_set_keys(allocation, machine);
    let sets = keys
        .iter()
        .filter_map(|key| tables.get::<FirewallRuleSet>(key));
    // A shared network is in firewalls of other projects, for which its project's rules are not.
    sets.filter(|set| set.project == allocation.project || is_for_guests(&set.set))
        .collect()
}

/// The last report of a machine's own allocation.
pub(crate) fn own_status<'a>(tables: &'a Tables, machine: &Machine) -> Option<&'a FirewallStatus> {
    let allocation = machine.allocation.as_ref()?;
    let status = tables.get::<FirewallStatus>(&machine.id)?;
    (status.allocation == allocation.id).then_some(status.as_ref())
}

/// `true` if a report says anything new.
pub fn firewall_report_matters(tables: &Tables, report: &ReportFirewall) -> bool {
    let Some(known) = tables.get::<FirewallStatus>(&report.machine) else {
        return true;
    };
    known.allocation != report.allocation
        || known.applied_term != report.applied_term
        || known.applied_generation != report.applied_generation
        || known.applied_sets != report.applied_sets
        || known.refused_rules != report.refused_rules
        || known.error != report.error
        || known.agent_version != report.agent_version
        || known.routes != report.routes
        || known.update != report.update
}
