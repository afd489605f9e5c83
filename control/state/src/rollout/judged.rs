//! Agents as a rollout judges them.

use proto_types::TenantId;

use crate::rollout::entity::AgentKey;

/// The standing of an agent beside the release of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentStanding {
    /// It runs the release and is healthy.
    Settled,
    /// It does not yet, for this reason.
    OnTheWay(String),
    /// It will not run the release, for this reason.
    Refused(String),
}

/// An agent, as a rollout judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedAgent {
    /// The agent.
    pub agent: AgentKey,
    /// The tenant that may have written what it reports: that of a firewall. `None` means that it is the
    /// site's.
    pub tenant: Option<TenantId>,
    /// Its standing.
    pub standing: AgentStanding,
}
