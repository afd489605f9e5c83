//! The plan of a rollout: which agents, in which waves, and what lets the next wave begin.

use serde::{Deserialize, Serialize};

/// The agents that a rollout is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RolloutKind {
    /// The agents of firewalls.
    Firewall,
    /// The agents of switches.
    Core,
    /// The agents of BMCs.
    Bmc,
    /// The boot servers.
    Pixie,
}

impl RolloutKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Firewall, Self::Core, Self::Bmc, Self::Pixie];

    /// Its name, which is the key of its rollout.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firewall => "firewall",
            Self::Core => "core",
            Self::Bmc => "bmc",
            Self::Pixie => "pixie",
        }
    }
}

/// The number of agents that have the release at the end of a wave, those of earlier waves included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaveSize {
    /// So many agents.
    Agents(u32),
    /// A share of all agents, percent, rounded up.
    Percent(u32),
}

impl WaveSize {
    /// The number of agents out of `all`.
    pub fn of(self, all: usize) -> usize {
        match self {
            Self::Agents(agents) => usize::try_from(agents).unwrap_or(usize::MAX).min(all),
            Self::Percent(percent) => {
                let percent = usize::try_from(percent.min(100)).unwrap_or(100);
                all.saturating_mul(percent).div_ceil(100)
            }
        }
    }
}

/// The gate between two waves: when the next one begins, and when the rollout stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutGate {
    /// Time for which all agents of a wave must run the release and be healthy, milliseconds.
    pub healthy_for_ms: u64,
    /// Time after the begin of a wave from which an agent that does not run the release, or is not
    /// healthy, counts as failed, milliseconds.
    pub patience_ms: u64,
    /// Most failed agents; with one more the rollout stops.
    pub failures_max: u32,
}
