//! The facts that the checks judge. `collect` fills them in.

use proto_public::api::v2::MachineIssues;
use proto_public::metalmesh::admin::v1::{
    ClusterServiceStatusResponse, DoctorServiceGetResponse, FirewallStatus, Identity, Rollout,
};

use super::audit::AuditFacts;
use super::probed::{PrivateFile, ProbedAddress, ProbedNode};

/// A fact, or the reason why it is unknown.
pub(super) type FactResult<T> = Result<T, String>;

/// All facts of a report.
#[derive(Clone, Debug)]
pub(super) struct DoctorFacts {
    /// Seconds since 1970, by the clock of this host.
    pub(super) now_s: i64,
    /// The context file. `None` means there is none.
    pub(super) context: Option<PrivateFile>,
    /// Keys of a control node on this host, and its data directory. Empty without one.
    pub(super) keys: Vec<PrivateFile>,
    pub(super) nodes: Vec<ProbedNode>,
    pub(super) mesh: Vec<ProbedAddress>,
    pub(super) cluster: FactResult<ClusterServiceStatusResponse>,
    pub(super) identities: FactResult<Vec<Identity>>,
    pub(super) issues: FactResult<Vec<MachineIssues>>,
    pub(super) firewalls: FactResult<Vec<FirewallStatus>>,
    /// The rollouts, at most one to each kind of agents.
    pub(super) rollouts: FactResult<Vec<Rollout>>,
    pub(super) audit: FactResult<AuditFacts>,
}

impl DoctorFacts {
    /// The reports of the nodes that answered.
    pub(super) fn answers(&self) -> impl Iterator<Item = &DoctorServiceGetResponse> {
        self.nodes.iter().filter_map(|node| node.said.as_ref().ok())
    }

    /// The node that serves the agents' sessions. `None` if it was not asked, or did not answer.
    pub(super) fn serving(&self) -> Option<&DoctorServiceGetResponse> {
        self.answers().find(|answer| answer.serves_sessions)
    }

    /// The reason why no node answered.
    pub(super) fn silence(&self) -> String {
        let mut errors = self
            .nodes
            .iter()
            .filter_map(|node| node.said.as_ref().err());
        errors.next().cloned().unwrap_or_default()
    }
}
