use std::collections::BTreeMap;

use serde::Serialize;

use super::traffic::DeviceStatistics;
use crate::compile::{
    DROPPED, ESTABLISHED, EXTERNAL_IN, EXTERNAL_OUT, INTERNAL_IN, INTERNAL_OUT, INVALID, SPOOFED,
};
use crate::netlink::CounterValue;
use crate::rule::{Action, RuleSet};

/// Beginnings of the names of counters.
const RATE_LIMIT: &str = "rate-limit/";
const SOURCE_NAT: &str = "snat/";
const INPUT: &str = "input/";
const INPUT_RULE: &str = "firewall/input/";

/// Everything that the firewall has counted, by the names that reports use. All values only grow
/// while the firewall runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// When the counters were read, milliseconds since 1970.
    pub read_at_ms: u64,
    /// Accounting of the private networks, as the published `FirewallMonitor` has it.
    pub devices: DeviceStatistics,
    /// Packets of flows that were accepted before, and of related ones.
    pub established: CounterValue,
    /// Packets that connection tracking refuses.
    pub invalid: CounterValue,
    /// Forwarded packets whose source does not belong to the network that they come from.
    pub spoofed: CounterValue,
    /// Forwarded packets that no rule accepted.
    pub dropped: CounterValue,
    /// Packets above the rate limit of a network, by its id.
    pub rate_limited: BTreeMap<String, CounterValue>,
    /// Flows with a replaced source, by the network that they go to. Counts first packets.
    pub translated: BTreeMap<String, CounterValue>,
    /// Packets for the firewall itself, by the kind of access.
    pub input: BTreeMap<String, CounterValue>,
    /// Hits of each rule.
    pub rules: RuleStatistics,
    /// Counters of other names, such as those of rules that are no longer known.
    pub other: BTreeMap<String, CounterValue>,
}

/// Hits of each rule by what it does, by the name of its counter. A packet counts once, at the rule
/// that decided about its flow's first packet; a rule that only logs counts what it logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleStatistics {
    /// Rules that accept.
    pub accept: BTreeMap<String, CounterValue>,
    /// Rules that drop.
    pub drop: BTreeMap<String, CounterValue>,
    /// Rules that log.
    pub log: BTreeMap<String, CounterValue>,
}

impl Statistics {
    /// Sorts counters by what they count. `rules` says what each rule does.
    #[must_use]
    pub fn new(read_at_ms: u64, counters: BTreeMap<String, CounterValue>, rules: &RuleSet) -> Self {
        let actions: BTreeMap<String, Action> = rules
            .rules()
            .map(|rule| (rule.id.counter(), rule.action))
            .collect();
        let mut sorted = Self {
            read_at_ms,
            ..Self::default()
        };
        for (name, value) in counters {
            let action = actions.get(&name).copied();
            *sorted.place(name, action) = value;
        }
        sorted
    }

    /// Where the value of a counter belongs.
    fn place(&mut self, name: String, action: Option<Action>) -> &mut CounterValue {
        let by_action = match action {
            Some(Action::Accept) => Some(&mut self.rules.accept),
            Some(Action::Drop) => Some(&mut self.rules.drop),
            Some(Action::Log) => Some(&mut self.rules.log),
            None => None,
        };
        if let Some(list) = by_action {
            return list.entry(name).or_default();
        }
        let DeviceStatistics { internal, external } = &mut self.devices;
        match name.as_str() {
            ESTABLISHED => return &mut self.established,
            INVALID => return &mut self.invalid,
            SPOOFED => return &mut self.spoofed,
            DROPPED => return &mut self.dropped,
            INTERNAL_IN => return &mut internal.incoming,
            INTERNAL_OUT => return &mut internal.outgoing,
            EXTERNAL_IN => return &mut external.incoming,
            EXTERNAL_OUT => return &mut external.outgoing,
            _ => {}
        }
        if let Some(network) = name.strip_prefix(RATE_LIMIT) {
            return self.rate_limited.entry(network.to_owned()).or_default();
        }
        if let Some(network) = name.strip_prefix(SOURCE_NAT) {
            return self.translated.entry(network.to_owned()).or_default();
        }
        let rule = name.strip_prefix(INPUT_RULE);
        let rule = rule.and_then(|rest| rest.strip_suffix("/0"));
        if let Some(kind) = rule.or_else(|| name.strip_prefix(INPUT)) {
            return self.input.entry(kind.to_owned()).or_default();
        }
        self.other.entry(name).or_default()
    }

    /// Sum of the values of a list.
    pub(crate) fn sum(list: &BTreeMap<String, CounterValue>) -> CounterValue {
        let zero = CounterValue::default();
        list.values().fold(zero, |sum, value| CounterValue {
            packets: sum.packets.saturating_add(value.packets),
            bytes: sum.bytes.saturating_add(value.bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Statistics;
    use crate::admit::admit;
    use crate::config::Config;
    use crate::netlink::CounterValue;

    #[test]
    fn counters_are_sorted_by_what_they_count() {
        let text = "
sources:
  static:
    firewall:
      networks: [{networkID: tenant, networkType: private, vrf: 42}]
      rules:
      - {name: no, action: drop}
      - {name: seen, action: log}
    cwnp: {egress: [{name: dns}]}
controllers: {firewall: {source: static}, cwnp: {source: static}}
";
        let rules = admit(&Config::parse(text).unwrap()).rules;
        let names = [
            "cwnp/egress/dns/0",
            "firewall/rules/no/0",
            "firewall/rules/seen/0",
            "cwnp/egress/gone/0",
            "established",
            "invalid",
            "dropped",
            "internal_in",
            "external_out",
            "rate-limit/internet",
            "snat/internet",
            "input/ssh",
        ];
        let counters: BTreeMap<String, CounterValue> = (1_u64..)
            .zip(names)
            .map(|(packets, name)| {
                let bytes = packets * 100;
                (name.to_owned(), CounterValue { packets, bytes })
            })
            .collect();
        let found = Statistics::new(7, counters, &rules);
        let one = |list: &BTreeMap<String, CounterValue>, name: &str| {
            assert_eq!(list.len(), 1, "{list:?}");
            list[name].packets
        };
        assert_eq!(one(&found.rules.accept, "cwnp/egress/dns/0"), 1);
        assert_eq!(one(&found.rules.drop, "firewall/rules/no/0"), 2);
        assert_eq!(one(&found.rules.log, "firewall/rules/seen/0"), 3);
        assert_eq!(one(&found.other, "cwnp/egress/gone/0"), 4);
        assert_eq!(found.established.packets, 5);
        assert_eq!(found.invalid.packets, 6);
        assert_eq!(found.dropped.packets, 7);
        assert_eq!(found.devices.internal.incoming.packets, 8);
        assert_eq!(found.devices.external.outgoing.bytes, 900);
        assert_eq!(one(&found.rate_limited, "internet"), 10);
        assert_eq!(one(&found.translated, "internet"), 11);
        assert_eq!(one(&found.input, "ssh"), 12);
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["devices"]["external"]["out"]["packets"], 9);
        assert_eq!(json["rules"]["accept"]["cwnp/egress/dns/0"]["bytes"], 100);
    }
}
