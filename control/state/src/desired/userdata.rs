//! User data of firewalls, which control makes.
//!
//! A firewall has access to the underlay, so that its project gets neither a key nor a script into
//! it. The files of its agent are made of the allocation alone.

use crate::machine::entity::{Allocation, AllocationType};

/// The configuration of a firewall's agent.
const AGENT_CONFIG: &str = "/etc/firewall-controller/config.yaml";

/// A file of a firewall's system, of root alone (0600).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserdataContent {
    /// Absolute path.
    pub path: &'static str,
    /// Content.
    pub content: String,
}

/// The files of a firewall's system that control makes. Empty for other machines.
pub fn userdata_contents(allocation: &Allocation) -> Vec<UserdataContent> {
    if allocation.kind != AllocationType::Firewall {
        return Vec::new();
    }
    vec![UserdataContent {
        path: AGENT_CONFIG,
        content: agent_config(allocation),
    }]
}

/// The configuration of the agent: control is the source of every controller, addressed by the
/// identity that the installation leaves in the system. Needs no escapes: a host name is checked
/// before an allocation has it, and a project's id is a UUID.
fn agent_config(allocation: &Allocation) -> String {
    format!(
        "# Made by control at the installation.\n\
         name: \"{}\"\n\
         sources:\n  metal:\n    projectID: \"{}\"\n\
         controllers:\n  firewall:\n    source: metal\n  cwnp:\n    source: metal\n  \
         service:\n    source: metal\n",
        allocation.hostname, allocation.project
    )
}
