//! User data of firewalls, which control makes.
//!
//! A firewall has access to the underlay, so that its project gets neither a key nor a script into
//! it. The files of its agent are made of the allocation alone.

use crate::machine::entity::{Allocation, AllocationType};
use crate::network::entity::NetworkType;

/// The configuration of a firewall's agent.
const AGENT_CONFIG: &str = "/etc/firewall-controller/config.yaml";

/// Most prefixes of self-update: the agent refuses a configuration with more.
const LOCAL_PREFIXES_MAX: usize = 64;

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
///
/// It enables self-update, and has no keys of releases: those come with hammer or the image, so that
/// control alone cannot choose who signs what a firewall runs. Releases may be fetched through the
/// underlay, in which the agent is, and where its leaves let it reach what the site names.
fn agent_config(allocation: &Allocation) -> String {
    let underlays = allocation.networks.iter();
    let underlays = underlays.filter(|network| network.kind == NetworkType::Underlay);
    let prefixes = underlays.flat_map(|network| &network.prefixes);
    let prefixes = prefixes.take(LOCAL_PREFIXES_MAX);
    let prefixes: Vec<String> = prefixes.map(|prefix| format!("\"{prefix}\"")).collect();
    format!(
        "# Made by control at the installation.\n\
         name: \"{}\"\n\
         sources:\n  metal:\n    projectID: \"{}\"\n\
         controllers:\n  firewall:\n    source: metal\n    selfUpdate:\n      enabled: true\n      \
         localPrefixes: [{}]\n  cwnp:\n    source: metal\n  service:\n    source: metal\n",
        allocation.hostname,
        allocation.project,
        prefixes.join(", ")
    )
}
