//! Electric power that a machine draws.

use serde::{Deserialize, Serialize};

use crate::bounds;

/// The electric power that a machine draws, and its power supplies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draw {
    /// Measured power; `None` means that the BMC does not measure.
    pub metric: Option<PowerMetric>,
    /// Power supplies of the machine, or of the chassis that it shares.
    pub supplies: Vec<PowerSupply>,
}

impl Draw {
    /// Most power supplies kept per machine; further ones are cut off. More than any chassis has.
    pub const SUPPLIES_MAX: usize = 32;
    /// Longest health or state of a supply, bytes; the rest is cut off. Redfish's words have at
    /// most 20.
    pub const WORD_LEN_MAX: usize = 64;
    /// Largest power, mW: a megawatt. A larger value becomes this one.
    pub const MW_MAX: u64 = 1_000_000_000;
    /// Longest interval, thousandths of a minute: a year. A longer one becomes this one.
    pub const MILLIMINUTES_MAX: u64 = 525_600_000;

    /// The same, cut to its bounds. Reports are cut before they are compared with the stored one:
    /// cut later, they would differ each time and be written each time.
    #[must_use]
    pub fn clipped(mut self) -> Self {
        if let Some(metric) = &mut self.metric {
            for power in [
                &mut metric.average_mw,
                &mut metric.max_mw,
                &mut metric.min_mw,
            ] {
                *power = Self::MW_MAX.min(*power);
            }
            let interval = &mut metric.interval_milliminutes;
            *interval = Self::MILLIMINUTES_MAX.min(*interval);
        }
        self.supplies.truncate(Self::SUPPLIES_MAX);
        for supply in &mut self.supplies {
            for word in [&mut supply.health, &mut supply.state] {
                word.truncate(bounds::clip(word, Self::WORD_LEN_MAX).len());
            }
        }
        self
    }
}

/// Power measured over an interval, as Redfish's `PowerMetrics` (DSP0268, Power), in thousandths of
/// its units: integers, because states are compared for equality.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PowerMetric {
    /// Mean, mW.
    pub average_mw: u64,
    /// Length of the interval, thousandths of a minute.
    pub interval_milliminutes: u64,
    /// Highest, mW.
    pub max_mw: u64,
    /// Lowest, mW.
    pub min_mw: u64,
}

/// One power supply, in Redfish's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PowerSupply {
    /// `OK`, `Warning`, `Critical`.
    pub health: String,
    /// `Enabled`, `Absent`, ...
    pub state: String,
}
