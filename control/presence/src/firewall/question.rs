use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use super::RuleCandidate;

/// A question to the leader about a firewall.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FirewallQuestion {
    /// Its last counters.
    Numbers(MachineId),
    /// Asks the firewall about rules. The leader answers when the firewall has, or its time is over.
    Try(Box<RuleCandidate>),
}
