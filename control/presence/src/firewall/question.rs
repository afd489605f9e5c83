use proto_types::MachineId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::RuleCandidate;

/// A question to the leader about a firewall.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FirewallQuestion {
    /// Its last counters.
    Numbers(MachineId),
    /// Asks the firewall about rules.
    Try(Box<RuleCandidate>),
    /// The state of a candidate that it was asked about.
    Effect {
        /// The firewall.
        machine: MachineId,
        /// The candidate.
        id: Uuid,
    },
}
