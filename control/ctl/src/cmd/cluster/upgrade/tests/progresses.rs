//! How far an upgrade is, and which node is next.

use proto_public::metalmesh::admin::v1::{Node, NodeRole};

use super::{cluster, node, program, silent, three, upgraded};
use crate::cmd::cluster::upgrade::facts::ProgramVersion;
use crate::cmd::cluster::upgrade::progress::{NodeUpgradeState, lack, progress};

#[test]
fn progress_names_the_next_node() {
    use NodeUpgradeState::{Away, CatchingUp, Next, Upgraded, Waiting};

    let late = Node {
        behind: Some(300),
        ..upgraded(2)
    };
    let learner = Node {
        role: NodeRole::Learner.into(),
        ..upgraded(4)
    };
    let states = |nodes: Vec<Node>, program: Option<&ProgramVersion>| {
        let found = progress(&cluster(nodes), program);
        let states: Vec<_> = found.nodes.iter().map(|node| node.state).collect();
        (found.complete, states)
    };
    let target = program("1.1.0", 3);
    for (what, nodes, wanted) in [
        ("before", three(), (false, vec![Waiting, Next, Waiting])),
        (
            "a node restarts",
            vec![node(1), silent(node(2)), node(3)],
            (false, vec![Waiting, Away, Waiting]),
        ),
        (
            "a node catches up",
            vec![node(1), late, node(3)],
            (false, vec![Waiting, CatchingUp, Waiting]),
        ),
        (
            "a node that was upgraded is away",
            vec![node(1), silent(upgraded(2)), node(3)],
            (false, vec![Waiting, Away, Waiting]),
        ),
        (
            "the last one that was upgraded is away",
            vec![upgraded(1), upgraded(2), silent(upgraded(3))],
            (false, vec![Upgraded, Upgraded, Away]),
        ),
        (
            "a node without a vote is away",
            vec![node(1), node(2), node(3), silent(learner)],
            (false, vec![Waiting, Next, Waiting, Away]),
        ),
        (
            "the leader is left",
            vec![node(1), upgraded(2), upgraded(3)],
            (false, vec![Next, Upgraded, Upgraded]),
        ),
        (
            "after",
            vec![upgraded(1), upgraded(2), upgraded(3)],
            (true, vec![Upgraded; 3]),
        ),
    ] {
        assert_eq!(states(nodes, Some(&target)), wanted, "{what}");
    }
    assert_eq!(states(three(), None), (true, vec![Upgraded; 3]));
}

#[test]
fn the_next_node_waits_for_the_one_before() {
    let late = Node {
        behind: Some(300),
        ..upgraded(2)
    };
    let target = program("1.1.0", 3);
    for (what, two, wanted) in [
        ("back", upgraded(2), None),
        ("not restarted yet", node(2), Some("runs 1.0.0 (level 2)")),
        ("away", silent(upgraded(2)), Some("is not heard")),
        ("late", late, Some("is 300 entries behind")),
    ] {
        let found = lack(&cluster(vec![node(1), two, node(3)]), 2, Some(&target));
        match wanted {
            None => assert_eq!(found, None, "{what}"),
            Some(wanted) => assert!(found.unwrap().contains(wanted), "{what}"),
        }
    }
    let other = lack(&cluster(three()), 9, None).unwrap();
    assert!(other.contains("node 9 is not a member"), "{other}");
    // Without a program the node has to be there, whatever it runs.
    assert_eq!(lack(&cluster(three()), 2, None), None);
}
