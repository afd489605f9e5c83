//! Electric power that a machine draws.

use serde::{Deserialize, Serialize};

use crate::bounds;

/// The electric power that a machine draws, and what it draws it by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draw {
    /// None when the BMC does not measure.
    pub metric: Option<PowerMetric>,
    /// Of the machine or of the chassis it shares.
    pub supplies: Vec<PowerSupply>,
}

impl Draw {
    /// Power supplies of one machine that are kept: more than any chassis has.
    pub const SUPPLIES_MAX: usize = 32;
    /// Longest health or state of a supply that is kept, bytes; Redfish's own words have 20 at most.
    pub const WORD_LEN_MAX: usize = 64;
    /// Largest power that is kept, mW: a megawatt.
    pub const MW_MAX: u64 = 1_000_000_000;
    /// Longest interval that is kept, thousandths of a minute: a year.
    pub const MILLIMINUTES_MAX: u64 = 525_600_000;

    /// The same within its bounds. Reports are cut before they are compared with what is stored: one
    /// that is cut later would differ each time, and be written each time.
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

/// What a BMC measured over some time, as Redfish's `PowerMetrics` (DSP0268, Power): in
/// thousandths of its units, because state is compared and a fraction would not be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PowerMetric {
    /// Mean, mW.
    pub average_mw: u64,
    /// Over how long, thousandths of a minute.
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
