//! Agents as rollouts know them, and the programs that they run.

use std::fmt;

use proto_types::{MachineId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{AgentRelease, RolloutKind};

/// The agent of a rollout: the id of a firewall's machine, or partition and name of another agent, such
/// as `p1/leaf1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentKey(String);

impl AgentKey {
    /// The agent of this name in a partition.
    pub fn named(partition: &PartitionId, name: &str) -> Self {
        Self(format!("{partition}/{name}"))
    }

    /// The id of the partition of another agent. `None` means that it is a firewall.
    pub(crate) fn partition(&self) -> Option<&str> {
        self.0.split_once('/').map(|(partition, _)| partition)
    }

    /// The machine of a firewall. `None` means that it is another agent.
    pub fn machine(&self) -> Option<MachineId> {
        self.0.parse().ok()
    }
}

impl From<MachineId> for AgentKey {
    fn from(machine: MachineId) -> Self {
        Self(machine.to_string())
    }
}

impl fmt::Display for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The program that the agent of a switch, of BMCs or of a boot server runs, as it reports it. There is
/// one for each identity, and it ends with the identity. Firewalls have theirs in `FirewallStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProgram {
    /// The key: SPIFFE id of the agent.
    pub identity: String,
    /// Its kind.
    pub kind: RolloutKind,
    /// Its name in rollouts.
    pub agent: AgentKey,
    /// Version of the program.
    pub version: String,
    /// Phase of its self-update, as the agent names it.
    pub phase: String,
    /// Version that it was told of. `None` means that it was told of none.
    #[serde(default)]
    pub wanted: Option<String>,
    /// The rule that the release breaks, or the reason of the failure.
    #[serde(default)]
    pub error: Option<String>,
    /// The reason why the agent does not do its work. `None` means that it does.
    #[serde(default)]
    pub ailment: Option<String>,
    /// Time of the report.
    pub at: Timestamp,
}

/// The release that all agents of a kind are told of. That of firewalls is stored as `FirewallRelease`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRelease {
    /// The key: the agents that it is for.
    pub kind: RolloutKind,
    /// The release.
    pub release: AgentRelease,
    /// Login of the caller that started its rollout.
    pub set_by: String,
    /// Time at which that was complete.
    pub set_at: Timestamp,
}
