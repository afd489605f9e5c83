//! Parts of the reports of a firewall's agent: its routes, and its own program.

use serde::{Deserialize, Serialize};

/// The distance of a firewall's routes, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRoutes {
    /// The distance that the agent wants: control's, or the longest while its rules are not in
    /// force.
    pub wanted: u32,
    /// The distance that the routing daemon has, as the agent read it. `None` means that it could
    /// not be read, or is no distance.
    #[serde(default)]
    pub observed: Option<u32>,
    /// Why nothing was observed. `None` means that it was.
    #[serde(default)]
    pub error: Option<String>,
}

/// Self-update of a firewall's agent, as the agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallUpdate {
    /// The agent's word for its phase.
    pub phase: String,
    /// The version that its source names. `None` means that it names none.
    #[serde(default)]
    pub wanted: Option<String>,
    /// The rule that a release breaks, or another reason. `None` means that there is none.
    #[serde(default)]
    pub error: Option<String>,
}
