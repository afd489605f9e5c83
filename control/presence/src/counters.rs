//! Counters and optics of switch ports: numbers that change all the time, kept in memory.

use std::collections::BTreeMap;

use proto_types::SwitchId;

use crate::numbers::SwitchNumbers;

/// Most ports of a switch that are kept. Further ones are left out.
const PORTS_MAX: usize = 512;
/// Most switches that are kept. Further ones are left out.
const SWITCHES_MAX: usize = 10_000;

/// The last numbers of all switches.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<SwitchId, SwitchNumbers>);

impl Counters {
    /// Keeps the numbers of a report.
    pub(crate) fn keep(&mut self, switch: &SwitchId, mut numbers: SwitchNumbers) {
        while numbers.ports.len() > PORTS_MAX {
            numbers.ports.pop_last();
        }
        if self.0.len() < SWITCHES_MAX || self.0.contains_key(switch) {
            self.0.insert(switch.clone(), numbers);
        }
    }

    /// The last numbers of a switch.
    pub(crate) fn of(&self, switch: &SwitchId) -> Option<SwitchNumbers> {
        self.0.get(switch).cloned()
    }
}
