//! Plans and progress of clusters in every state that an upgrade passes.

mod plans;
mod progresses;

use proto_public::metalmesh::admin::v1::{ClusterServiceStatusResponse, Node, NodeRole};

use super::facts::ProgramVersion;

/// Seconds since 1970, by every clock of these tests.
const NOW_S: i64 = 1_800_000_000;

fn program(version: &str, feature_level: u32) -> ProgramVersion {
    ProgramVersion {
        version: version.to_owned(),
        feature_level,
    }
}

fn at(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 0 }
}

/// A voter that is heard, caught up, and runs version 1.0.0 of level 2.
fn node(id: u64) -> Node {
    Node {
        id,
        role: NodeRole::Voter.into(),
        peer_address: format!("10.0.0.{id}:4444"),
        behind: Some(0),
        heard_at: Some(at(NOW_S)),
        feature_level: 2,
        version: "1.0.0".to_owned(),
        ..Node::default()
    }
}

/// The same node with the new program.
fn upgraded(id: u64) -> Node {
    Node {
        feature_level: 3,
        version: "1.1.0".to_owned(),
        ..node(id)
    }
}

fn silent(node: Node) -> Node {
    Node {
        heard_at: Some(at(NOW_S - 60)),
        ..node
    }
}

/// A cluster that node 1 leads.
fn cluster(mut nodes: Vec<Node>) -> ClusterServiceStatusResponse {
    for node in &mut nodes {
        if node.id == 1 {
            node.role = NodeRole::Leader.into();
        }
    }
    let level = nodes.iter().map(|node| node.feature_level).min();
    ClusterServiceStatusResponse {
        leader: 1,
        feature_level: level.unwrap_or(0),
        nodes,
        ..ClusterServiceStatusResponse::default()
    }
}

fn three() -> Vec<Node> {
    vec![node(1), node(2), node(3)]
}
