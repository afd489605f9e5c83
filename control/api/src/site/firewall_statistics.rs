//! The counters of firewalls, by the rules of the sets that they have.

use std::collections::BTreeMap;

use control_convert::firewall_status::firewall_status;
use control_convert::{parse, time};
use control_gate::Caller;
use control_gate::refusal::of_store;
use control_presence::{CounterNumber, FirewallNumbers};
use control_state::life::{FirewallIntent, RuleSetIntent, firewall_desired};
use control_state::{RuleTarget, StateError};
use proto_firewall::{RuleContent, RuleList};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{MachineId, ProjectId};
use tonic::Status;

use crate::services::Services;

/// A rule of a set, by the name of its counter.
struct CountedRule<'a> {
    set: &'a RuleSetIntent,
    /// The object as its owner wrote it.
    object: String,
}

impl Services {
    /// The last counters of a firewall, and its standing. `None` as the project means an
    /// administrator.
    pub(super) async fn firewall_statistics(
        &self,
        caller: &Caller,
        firewall: &str,
        project: Option<ProjectId>,
    ) -> Result<mesh::FirewallStatistics, Status> {
        let machine: MachineId = parse("firewall", firewall)?;
        let found = self.gate.read(caller, |tables| {
            let intent = firewall_desired(tables, machine);
            let is_mine =
                |intent: &FirewallIntent| project.is_none_or(|project| project == intent.project);
            let mine = intent.filter(is_mine).zip(firewall_status(tables, machine));
            mine.ok_or_else(|| StateError::not_found("firewall", machine))
        });
        let (intent, mut status) = found.await?;
        self.add_heard(std::slice::from_mut(&mut status)).await?;
        let firewalls = self.node.presence.firewalls();
        let numbers = firewalls.numbers(machine, intent.allocation).await;
        let shown = shown(&intent, numbers.map_err(of_store)?);
        Ok(mesh::FirewallStatistics {
            status: Some(status),
            ..shown
        })
    }
}

fn shown(intent: &FirewallIntent, numbers: Option<FirewallNumbers>) -> mesh::FirewallStatistics {
    let shown = mesh::FirewallStatistics {
        firewall: intent.machine.to_string(),
        hostname: intent.hostname.clone(),
        project: intent.project.to_string(),
        ..mesh::FirewallStatistics::default()
    };
    let Some(numbers) = numbers else {
        return shown;
    };
    let known = counted_rules(intent);
    let (rules, others): (Vec<_>, Vec<_>) = numbers
        .counters
        .into_iter()
        .partition(|counter| counter.kind.is_of_rule());
    let counters = others.into_iter().map(|counter| mesh::FirewallCounter {
        kind: counter.kind.as_str().to_owned(),
        name: counter.name,
        packets: counter.packets,
        bytes: counter.bytes,
    });
    let rules = rules.into_iter();
    mesh::FirewallStatistics {
        read_at: time(numbers.read_at),
        reported_at: time(numbers.at),
        counters: counters.collect(),
        rules: rules.map(|counter| rule_counter(&known, counter)).collect(),
        rules_in_force: numbers.rules,
        left_out: numbers.left_out,
        ..shown
    }
}

fn rule_counter(
    known: &BTreeMap<String, CountedRule<'_>>,
    counter: CounterNumber,
) -> mesh::FirewallRuleCounter {
    let rule = known.get(&counter.name);
    let mut shown = mesh::FirewallRuleCounter {
        action: counter.kind.as_str().to_owned(),
        packets: counter.packets,
        bytes: counter.bytes,
        counter: counter.name,
        ..mesh::FirewallRuleCounter::default()
    };
    let Some(rule) = rule else {
        return shown;
    };
    let key = rule.set.set();
    match &key.target {
        RuleTarget::Firewall(id) => shown.firewall = id.to_string(),
        RuleTarget::Network(id) => shown.network = id.to_string(),
    }
    shown.owner = key.owner.to_string();
    shown.object.clone_from(&rule.object);
    shown
}

/// The rules of all sets by the names of their counters. Of two with one name the first counts, as
/// on the firewall, which refuses the other.
fn counted_rules(intent: &FirewallIntent) -> BTreeMap<String, CountedRule<'_>> {
    let mut found = BTreeMap::new();
    for set in &intent.sets {
        for named in named_rules(&set.row.current.content, &set.content()) {
            found.entry(named.counter).or_insert(CountedRule {
                set,
                object: named.object,
            });
        }
    }
    found
}

/// A rule: the name of its counter, and that of its object.
struct NamedRule {
    counter: String,
    object: String,
}

/// The rules of a content, with the names that its firewalls know them by. Both have the same lists:
/// in the set of a network only the names differ.
fn named_rules(own: &RuleContent, sent: &RuleContent) -> Vec<NamedRule> {
    let mut all = Vec::new();
    let mut add = |list: RuleList, own: &str, sent: &str| {
        all.push(NamedRule {
            counter: list.counter(sent),
            object: list.object(own),
        });
    };
    for (list, own, sent) in [
        (
            RuleList::Operator,
            &own.operator_rules,
            &sent.operator_rules,
        ),
        (
            RuleList::Egress,
            &own.egress_policies,
            &sent.egress_policies,
        ),
        (
            RuleList::Ingress,
            &own.ingress_policies,
            &sent.ingress_policies,
        ),
    ] {
        let pairs = own.iter().zip(sent);
        pairs.for_each(|(own, sent)| add(list, &own.name, &sent.name));
    }
    for (own, sent) in own.load_balancers.iter().zip(&sent.load_balancers) {
        add(RuleList::Service, &own.full_name(), &sent.full_name());
    }
    all
}

#[cfg(test)]
mod tests {
    use proto_firewall::{RuleSpec, ServiceSpec};

    use super::*;

    #[test]
    fn rules_are_found_by_the_counters_of_the_agent() {
        let rule = |name: &str| RuleSpec {
            name: name.into(),
            ..RuleSpec::default()
        };
        let own = RuleContent {
            operator_rules: vec![rule("no-smtp")],
            egress_policies: vec![rule("web"), rule("dns")],
            ingress_policies: vec![rule("ssh")],
            load_balancers: vec![ServiceSpec {
                name: "shop".into(),
                ..ServiceSpec::default()
            }],
            ..RuleContent::default()
        };
        let prefixes = ["10.0.0.0/22".parse().unwrap()];
        let sent = own.clone().of_network("private", &prefixes);
        let named = named_rules(&own, &sent);
        let objects: Vec<&str> = named.iter().map(|rule| &*rule.object).collect();
        let wanted = [
            "firewall rules/no-smtp",
            "cwnp egress/web",
            "cwnp egress/dns",
            "cwnp ingress/ssh",
            "service default/shop",
        ];
        assert_eq!(objects, wanted);
        for (rule, begin) in named.iter().zip([
            "firewall/rules/no-smtp.",
            "cwnp/egress/web.",
            "cwnp/egress/dns.",
            "cwnp/ingress/ssh.",
            "service/default/shop.",
        ]) {
            assert!(rule.counter.starts_with(begin), "{}", rule.counter);
            assert!(rule.counter.ends_with("/0"), "{}", rule.counter);
        }
    }
}
