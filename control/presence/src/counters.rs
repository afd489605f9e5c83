//! Counters and optics of switch ports: numbers that change all the time, kept in memory.

use std::collections::BTreeMap;

use proto_types::{SwitchId, Timestamp};

/// Most ports of a switch that are kept. Further ones are left out.
const PORTS_MAX: usize = 512;
/// Most switches that are kept. Further ones are left out.
const SWITCHES_MAX: usize = 10_000;

/// The last numbers of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchNumbers {
    /// Time of the report.
    pub at: Timestamp,
    /// The ports by name.
    pub ports: BTreeMap<String, PortNumbers>,
}

/// The last numbers of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortNumbers {
    /// Counters: received and sent bytes, packets, errors and drops. `None` means that the platform
    /// counts nothing.
    pub counters: Option<[u64; 8]>,
    /// The transceiver. `None` means that the platform reports none.
    pub optics: Option<OpticsReading>,
}

/// A transceiver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpticsReading {
    /// Vendor, part and serial number.
    pub module: [String; 3],
    /// Received and sent power, 0.01 dBm, and temperature, degrees Celsius.
    pub readings: [i32; 3],
}

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
