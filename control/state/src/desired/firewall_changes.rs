//! Firewalls whose desired state a change may concern.

use std::collections::BTreeSet;

use proto_types::MachineId;

use crate::firewall::entity::{FirewallRuleSet, RuleTarget};
use crate::firewall::read::firewalls_in;
use crate::tables::{Change, Record, Tables};

/// The firewalls that changes may concern, as of tables that have the changes: those that changed
/// themselves, that a changed set of rules is for, that are in a changed network, and whose
/// project's addresses in one of their networks changed.
pub fn concerned_firewalls(tables: &Tables, changes: &[Change]) -> BTreeSet<MachineId> {
    let mut found = BTreeSet::new();
    for change in changes {
        // The record before as well: a set or an address that is gone concerns them too.
        for record in [&change.before, &change.record].into_iter().flatten() {
            match record {
                Record::Machine(machine) => {
                    found.insert(machine.id);
                }
                Record::FirewallRuleSet(rules) => found.extend(of_rules(tables, rules)),
                // Prefixes and NAT of its networks are in the desired state of a firewall, also
                // where the network is another project's.
                Record::Network(network) => {
                    found.extend(firewalls_in(tables, &network.id, None));
                }
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
    match &rules.set.target {
        RuleTarget::Firewall(id) => vec![*id],
        RuleTarget::Network(id) => firewalls_in(tables, id, Some(rules.project)).collect(),
    }
}
