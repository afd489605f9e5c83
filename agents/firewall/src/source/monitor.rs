use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::compile::{
    DROPPED, EXTERNAL_IN, EXTERNAL_OUT, INPUT_DROPS, INTERNAL_IN, INTERNAL_OUT, INVALID, SPOOFED,
};
use crate::netlink::CounterValue;
use crate::rule::{Action, RuleSet};

/// A counter of a `FirewallMonitor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MonitorCounter {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl From<CounterValue> for MonitorCounter {
    fn from(value: CounterValue) -> Self {
        Self {
            bytes: value.bytes,
            packets: value.packets,
        }
    }
}

/// Traffic of a device of a `FirewallMonitor`, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MonitorTraffic {
    /// Bytes that came in.
    #[serde(rename = "in")]
    pub incoming: u64,
    /// Bytes that went out.
    #[serde(rename = "out")]
    pub outgoing: u64,
}

/// The report of a firewall in its `FirewallMonitor`, with the published names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MonitorReport {
    /// Counters of rules, by `accept` or `drop`, then by the name of the counter.
    pub rules: BTreeMap<&'static str, BTreeMap<String, MonitorCounter>>,
    /// Traffic, by `internal` or `external`.
    pub devices: BTreeMap<&'static str, MonitorTraffic>,
    /// `true` if the seed, or another source of the controller `firewall`, answers.
    #[serde(skip)]
    pub is_seed_connected: bool,
}

impl MonitorReport {
    /// A report of the kernel's counters. `rules` are those in force.
    #[must_use]
    pub fn of_counters(counters: &BTreeMap<String, CounterValue>, rules: &RuleSet) -> Self {
        let mut report = Self::default();
        let denying = rules.rules().filter(|rule| rule.action == Action::Drop);
        let denying: BTreeSet<String> = denying.map(|rule| rule.id.counter()).collect();
        for (name, value) in counters {
            if let Some((side, is_incoming)) = accounted(name) {
                let traffic = report.devices.entry(side).or_default();
                let bytes = if is_incoming {
                    &mut traffic.incoming
                } else {
                    &mut traffic.outgoing
                };
                *bytes = value.bytes;
                continue;
            }
            let is_drop = is_drop(name) || denying.contains(name);
            let action = if is_drop { "drop" } else { "accept" };
            let rules = report.rules.entry(action).or_default();
            rules.insert(name.clone(), (*value).into());
        }
        report
    }
}

/// `true` for a counter of packets that are dropped and are of no rule.
fn is_drop(name: &str) -> bool {
    matches!(name, DROPPED | INVALID | SPOOFED)
        || INPUT_DROPS.contains(&name)
        || name.starts_with("rate-limit/")
}

/// The side that a counter of the accounting is for; `true` if it counts what comes in. `None` for
/// every other counter.
fn accounted(name: &str) -> Option<(&'static str, bool)> {
    match name {
        INTERNAL_IN => Some(("internal", true)),
        INTERNAL_OUT => Some(("internal", false)),
        EXTERNAL_IN => Some(("external", true)),
        EXTERNAL_OUT => Some(("external", false)),
        _ => None,
    }
}
