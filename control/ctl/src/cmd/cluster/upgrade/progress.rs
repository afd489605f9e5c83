//! How far an upgrade is: what each node runs, and which one is next.

use proto_public::metalmesh::admin::v1::{ClusterServiceStatusResponse, Node};
use serde::Serialize;
use strum::IntoStaticStr;

use super::facts::{ProgramVersion, is_heard, is_leaders_word, is_voter, members, target};
use super::plan::{UpgradeStep, steps};

/// Log entries that a node may be behind and still count as caught up: what clients may write between
/// two answers of it.
const CAUGHT_UP: u64 = 100;

/// The state of a node in an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(super) enum NodeUpgradeState {
    /// It runs the program.
    Upgraded,
    /// Its turn is next.
    Next,
    /// Others come before it.
    Waiting,
    /// It does not answer the leader.
    Away,
    /// It is there, and lacks entries of the log.
    CatchingUp,
}

/// A node in an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NodeProgress {
    pub(super) node: u64,
    pub(super) leads: bool,
    pub(super) runs: ProgramVersion,
    pub(super) state: NodeUpgradeState,
}

/// All members of the cluster in an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct UpgradeProgress {
    /// The program. `None` means that all nodes run the same and nobody named another.
    pub(super) target: Option<ProgramVersion>,
    /// The level in use: programs below it are refused.
    pub(super) level_in_use: u32,
    /// `true` if all nodes run the program, are heard and have caught up.
    pub(super) complete: bool,
    pub(super) nodes: Vec<NodeProgress>,
}

/// The progress of the upgrade to `program`, or else to the newest program that a node runs.
pub(super) fn progress(
    cluster: &ClusterServiceStatusResponse,
    program: Option<&ProgramVersion>,
) -> UpgradeProgress {
    let target = target(cluster, program);
    let steps = steps(cluster, target.as_ref());
    let due = steps.iter().find_map(|step| match step {
        UpgradeStep::UpgradeNode { node, .. } => Some(*node),
        UpgradeStep::TransferLeader { .. } => None,
    });
    // No turn comes while a voter is away or catches up: programs take down the node that is next.
    let is_whole = |node: &Node| !is_voter(node) || lack_of(cluster, node).is_none();
    let next = due.filter(|_| is_leaders_word(cluster) && members(cluster).all(is_whole));
    let is_upgraded = |node: &Node| {
        target
            .as_ref()
            .is_none_or(|target| *target == ProgramVersion::of(node))
    };
    let nodes: Vec<NodeProgress> = members(cluster)
        .map(|node| NodeProgress {
            node: node.id,
            leads: node.id == cluster.leader,
            runs: ProgramVersion::of(node),
            state: match lack_of(cluster, node) {
                Some((state, _)) => state,
                None if is_upgraded(node) => NodeUpgradeState::Upgraded,
                None if next == Some(node.id) => NodeUpgradeState::Next,
                None => NodeUpgradeState::Waiting,
            },
        })
        .collect();
    UpgradeProgress {
        complete: nodes
            .iter()
            .all(|node| node.state == NodeUpgradeState::Upgraded),
        level_in_use: cluster.feature_level,
        nodes,
        target,
    }
}

/// The reason why the next node must wait for `id`. `None` means that it is back.
pub(super) fn lack(
    cluster: &ClusterServiceStatusResponse,
    id: u64,
    program: Option<&ProgramVersion>,
) -> Option<String> {
    if !is_leaders_word(cluster) {
        return Some("no leader answers".to_owned());
    }
    let Some(node) = members(cluster).find(|node| node.id == id) else {
        return Some(format!("node {id} is not a member"));
    };
    let runs = ProgramVersion::of(node);
    if let Some(program) = program.filter(|program| **program != runs) {
        return Some(format!("node {id} runs {runs}, and not {program}"));
    }
    lack_of(cluster, node).map(|(_, reason)| reason)
}

/// The reason why a node is not whole, apart from its program.
fn lack_of(
    cluster: &ClusterServiceStatusResponse,
    node: &Node,
) -> Option<(NodeUpgradeState, String)> {
    let id = node.id;
    if !is_heard(cluster, node) {
        return Some((NodeUpgradeState::Away, format!("node {id} is not heard")));
    }
    let behind = node.behind.unwrap_or(u64::MAX);
    (behind > CAUGHT_UP).then(|| {
        let reason = match node.behind {
            Some(behind) => format!("node {id} is {behind} entries behind"),
            None => format!("how far node {id} is behind is not known"),
        };
        (NodeUpgradeState::CatchingUp, reason)
    })
}
