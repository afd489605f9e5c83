//! The question to the leader about sessions and numbers, which only it has, and its answer.

use proto_identity::SpiffeId;
use proto_types::{MachineId, SwitchId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::firewall::{FirewallAnswer, FirewallQuestion};
use crate::numbers::SwitchNumbers;

/// A question to the leader. Nodes of other versions leave out fields that they do not know.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LeaderQuestion {
    /// Identities whose sessions are asked for.
    pub(crate) agents: Vec<String>,
    /// The switch whose numbers are asked for.
    pub(crate) switch: Option<SwitchId>,
    /// The question about a firewall.
    pub(crate) firewall: Option<FirewallQuestion>,
    /// The machines that may have been heard.
    pub(crate) machines: Vec<MachineId>,
}

/// The leader's answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LeaderAnswer {
    /// `true` for each of the agents that has a session. `None` while the leader serves no sessions
    /// yet.
    pub(crate) sessions: Option<Vec<bool>>,
    /// The last numbers of the switch.
    pub(crate) numbers: Option<SwitchNumbers>,
    /// The answer about the firewall. `None` if an older node leads, which does not know the
    /// question.
    pub(crate) firewall: Option<FirewallAnswer>,
    /// When each of the machines was last heard; `None` for one that was not since this node leads.
    /// Empty if an older node leads, which does not know the question.
    pub(crate) heard: Vec<Option<Timestamp>>,
}

/// The leader's record of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeardSwitch {
    /// `true` if its agent has a session. `None` means that it is not known.
    pub connected: Option<bool>,
    /// The last numbers of its ports.
    pub numbers: Option<SwitchNumbers>,
}

impl LeaderQuestion {
    pub(crate) fn about<'a>(agents: impl IntoIterator<Item = &'a SpiffeId>) -> Self {
        Self {
            agents: agents.into_iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }
}
