//! The facts that a plan is made of, and what they say about single nodes.

use std::cmp::Ordering;
use std::fmt;

use proto_public::metalmesh::admin::v1::{ClusterServiceStatusResponse, Node, NodeRole};
use proto_release::ReleaseVersion;
use serde::Serialize;

/// Longest time since a node answered the leader for which it counts as present, seconds.
const HEARD_WITHIN_S: i64 = 5;

/// A metalmeshd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ProgramVersion {
    /// Its version.
    pub(super) version: String,
    /// The highest feature level that it knows.
    pub(super) feature_level: u32,
}

impl ProgramVersion {
    /// The program that a node runs.
    pub(super) fn of(node: &Node) -> Self {
        Self {
            version: node.version.clone(),
            feature_level: node.feature_level,
        }
    }

    /// Orders by level, then by version. Text that is no version comes first.
    fn order(&self, other: &Self) -> Ordering {
        let version = |program: &Self| program.version.parse::<ReleaseVersion>().ok();
        let levels = self.feature_level.cmp(&other.feature_level);
        levels.then_with(|| version(self).cmp(&version(other)))
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (level {})", self.version, self.feature_level)
    }
}

/// All facts of a plan.
#[derive(Clone, Debug)]
pub(super) struct UpgradeFacts {
    /// Seconds since 1970, by the clock of this host.
    pub(super) now_s: i64,
    /// The cluster, as its leader sees it.
    pub(super) cluster: ClusterServiceStatusResponse,
    /// The new program. `None` means that nobody named one.
    pub(super) program: Option<ProgramVersion>,
    /// Time of the newest backup, seconds since 1970. `None` means that there is none; an error is
    /// the reason why it is unknown.
    pub(super) backup: Result<Option<i64>, String>,
}

/// The members of the cluster, by number.
pub(super) fn members(cluster: &ClusterServiceStatusResponse) -> impl Iterator<Item = &Node> {
    cluster.nodes.iter().filter(|node| {
        matches!(
            node.role(),
            NodeRole::Leader | NodeRole::Voter | NodeRole::Learner
        )
    })
}

/// `true` if a node has a vote.
pub(super) fn is_voter(node: &Node) -> bool {
    matches!(node.role(), NodeRole::Leader | NodeRole::Voter)
}

/// `true` if the leader answered: it alone knows how far others are behind.
pub(super) fn is_leaders_word(cluster: &ClusterServiceStatusResponse) -> bool {
    cluster.leader != 0 && cluster.nodes.iter().any(|node| node.behind.is_some())
}

/// `true` if a node answered the leader lately. The times are all by one clock, that of the node that
/// was asked, so that the clock of this host does not matter; the leader heard itself just now. Without
/// that time nothing says how old the others are.
pub(in crate::cmd::cluster) fn is_heard(
    cluster: &ClusterServiceStatusResponse,
    node: &Node,
) -> bool {
    let seconds = |node: &Node| node.heard_at.as_ref().map(|at| at.seconds);
    let leader = cluster.nodes.iter().find(|node| node.id == cluster.leader);
    let age = leader.and_then(seconds).zip(seconds(node));
    let age = age.map(|(now, at)| now.saturating_sub(at));
    node.id == cluster.leader || age.is_some_and(|age| age <= HEARD_WITHIN_S)
}

/// The voters that did not answer the leader lately. While one of them is away no other node is
/// restarted: it would be one more that the cluster cannot lose.
pub(super) fn silent_voters(cluster: &ClusterServiceStatusResponse) -> Vec<&Node> {
    let silent = members(cluster).filter(|node| is_voter(node) && !is_heard(cluster, node));
    silent.collect()
}

/// The program that the nodes are to run: the one that somebody named, else the newest that a node
/// runs while others run another one. `None` means that all run the same and nobody named another.
pub(super) fn target(
    cluster: &ClusterServiceStatusResponse,
    program: Option<&ProgramVersion>,
) -> Option<ProgramVersion> {
    if let Some(program) = program {
        return Some(program.clone());
    }
    let newest = members(cluster)
        .map(ProgramVersion::of)
        .max_by(ProgramVersion::order)?;
    let is_mixed = members(cluster).any(|node| ProgramVersion::of(node) != newest);
    is_mixed.then_some(newest)
}
