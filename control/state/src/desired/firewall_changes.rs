//! Firewalls whose desired state a change may concern.

use std::collections::BTreeSet;

use proto_types::MachineId;

use crate::firewall::entity::FirewallRuleSet;
use crate::firewall::health::{has_applied, is_alive};
use crate::firewall::read::{firewalls_in, firewalls_of_set};
use crate::machine::entity::{Allocation, AllocationType, Machine};
use crate::machine::read::partition_machines;
use crate::rollout::entity::{AgentKey, RolloutState};
use crate::tables::{Change, Record, Tables};

/// The firewalls that changes may concern, as of tables that have the changes: those that changed
/// themselves, that a changed set of rules is for, that are in a changed network, whose project's
/// addresses in one of their networks changed, whose partition's name servers changed, and that a
/// rollout reached. Another release of the site concerns them all.
pub fn concerned_firewalls(tables: &Tables, changes: &[Change]) -> BTreeSet<MachineId> {
    let mut found = BTreeSet::new();
    for change in changes {
        if moves_standby(change) {
            found.extend(competitors(tables, change));
        }
        found.extend(of_name_servers(tables, change));
        found.extend(of_rollout(change));
        // The record before as well: a set or an address that is gone concerns them too.
        for record in [&change.before, &change.record].into_iter().flatten() {
            match record {
                Record::Machine(machine) => {
                    found.insert(machine.id);
                }
                Record::FirewallRuleSet(rules) => found.extend(of_rules(tables, rules)),
                // Prefixes and NAT of its networks are in the desired state of a firewall, also
                // where the network is another project's; and the prefixes that machines of its
                // networks' parents may announce.
                Record::Network(network) => {
                    let children = tables.index().children.get(&network.id);
                    for id in children.into_iter().flatten().chain([&network.id]) {
                        found.extend(firewalls_in(tables, id, None));
                    }
                }
                Record::FirewallRelease(_) => found.extend(all_firewalls(tables)),
                Record::Ip(ip) => {
                    found.extend(firewalls_in(tables, &ip.network, Some(ip.project)));
                }
                _ => {}
            }
        }
    }
    found
}

fn of_rules(tables: &Tables, rules: &FirewallRuleSet) -> Vec<MachineId> {
    firewalls_of_set(tables, &rules.set, rules.project)
}

/// Firewalls that a rollout reached, or does not reach any more.
fn of_rollout(change: &Change) -> BTreeSet<MachineId> {
    let reach = |record: Option<&Record>| match record {
        Some(Record::Rollout(rollout)) if rollout.state != RolloutState::Done => {
            rollout.told.iter().filter_map(AgentKey::machine).collect()
        }
        _ => BTreeSet::new(),
    };
    let (before, after) = (reach(change.before.as_ref()), reach(change.record.as_ref()));
    &before ^ &after
}

/// All firewalls: each is in a network.
fn all_firewalls(tables: &Tables) -> impl Iterator<Item = MachineId> + '_ {
    let networks = tables.index().network_firewalls.values();
    networks.flatten().map(|(_, firewall)| *firewall)
}

/// The firewalls of a partition whose name servers changed.
fn of_name_servers(tables: &Tables, change: &Change) -> Vec<MachineId> {
    let (Some(Record::Partition(before)), Some(Record::Partition(after))) =
        (&change.before, &change.record)
    else {
        return Vec::new();
    };
    if before.dns_servers == after.dns_servers {
        return Vec::new();
    }
    let machines = partition_machines(tables, &after.id);
    let firewalls = machines.filter(|machine| firewall(machine).is_some());
    firewalls.map(|machine| machine.id).collect()
}

/// `true` if a firewall came, went, took the place of another one, or changed its health: then
/// others of its project may have another distance. Reports and signs of life come all the time; few
/// of them change this.
fn moves_standby(change: &Change) -> bool {
    let state = |record: Option<&Record>| match record {
        Some(Record::Machine(machine)) => {
            let allocation = firewall(machine)?;
            let replaces = allocation.replaces.clone();
            Some((Some((allocation.id, machine.phase, replaces)), false))
        }
        Some(Record::FirewallStatus(status)) => Some((None, has_applied(status))),
        Some(Record::EventLog(log)) => Some((None, is_alive(log))),
        _ => None,
    };
    state(change.before.as_ref()) != state(change.record.as_ref())
}

/// The firewalls of a project that share a private network with the firewall of a change.
fn competitors(tables: &Tables, change: &Change) -> BTreeSet<MachineId> {
    let mut found = BTreeSet::new();
    for record in [&change.before, &change.record].into_iter().flatten() {
        let machine = match record {
            Record::Machine(machine) => Some(machine),
            Record::FirewallStatus(status) => tables.get::<Machine>(&status.machine),
            Record::EventLog(log) => tables.get::<Machine>(&log.machine),
            _ => None,
        };
        let Some(allocation) = machine.and_then(|machine| firewall(machine)) else {
            continue;
        };
        let networks = allocation.networks.iter();
        for network in networks.filter(|network| network.kind.is_child()) {
            found.extend(firewalls_in(
                tables,
                &network.network,
                Some(allocation.project),
            ));
        }
    }
    found
}

/// The allocation of a machine that is a firewall.
fn firewall(machine: &Machine) -> Option<&Allocation> {
    let allocation = machine.allocation.as_ref()?;
    (allocation.kind == AllocationType::Firewall).then_some(allocation)
}
