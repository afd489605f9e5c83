//! Plans and progress of clusters in every state that an upgrade passes.

use proto_public::metalmesh::admin::v1::{
    ClusterServiceStatusResponse, ClusterTime, Node, NodeRole,
};

use super::facts::{ProgramVersion, UpgradeFacts};
use super::plan::{UpgradePlan, UpgradeStep, plan};
use super::progress::{NodeUpgradeState, lack, progress};
use super::remark::UpgradeRemark;

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

/// Facts with a fresh backup and a new program of the next level.
fn facts(nodes: Vec<Node>) -> UpgradeFacts {
    UpgradeFacts {
        now_s: NOW_S,
        cluster: cluster(nodes),
        program: Some(program("1.1.0", 3)),
        backup: Ok(Some(NOW_S - 3600)),
    }
}

/// The steps as short text: numbers of nodes, and `>` before a new leader.
fn order(plan: &UpgradePlan) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| match step {
        UpgradeStep::UpgradeNode { node, .. } => node.to_string(),
        UpgradeStep::TransferLeader { node } => format!(">{node}"),
    });
    steps.collect()
}

fn assert_says(remarks: &[UpgradeRemark], wanted: &[&str], what: &str) {
    assert_eq!(remarks.len(), wanted.len(), "{what}: {remarks:?}");
    for (remark, wanted) in remarks.iter().zip(wanted) {
        assert!(remark.what.contains(wanted), "{what}: {remark:?}");
        assert!(!remark.why.is_empty() && !remark.mend.is_empty(), "{what}");
    }
}

#[test]
fn followers_come_before_the_leader() {
    let learner = Node {
        role: NodeRole::Learner.into(),
        ..node(4)
    };
    let invited = Node {
        role: NodeRole::Invited.into(),
        ..node(5)
    };
    let late = Node {
        behind: Some(5),
        ..node(2)
    };
    for (what, nodes, wanted) in [
        ("three nodes", three(), &["2", "3", ">2", "1"][..]),
        (
            "a learner first, and nobody who has not joined",
            vec![node(1), node(2), node(3), learner, invited],
            &["4", "2", "3", ">2", "1"],
        ),
        (
            "the rest of an upgrade",
            vec![node(1), upgraded(2), node(3)],
            &["3", ">2", "1"],
        ),
        (
            "the leader runs it already",
            vec![upgraded(1), node(2), node(3)],
            &["2", "3"],
        ),
        (
            "the voter that is least behind leads",
            vec![node(1), late, node(3)],
            &["2", "3", ">3", "1"],
        ),
        ("one node", vec![node(1)], &["1"]),
        (
            "all run it",
            vec![upgraded(1), upgraded(2), upgraded(3)],
            &[],
        ),
    ] {
        let plan = plan(&facts(nodes));
        assert_eq!(order(&plan), wanted, "{what}");
        assert_says(&plan.obstacles, &[], what);
    }
}

#[test]
fn without_a_named_program_the_newest_one_counts() {
    let unnamed = |nodes| UpgradeFacts {
        program: None,
        ..facts(nodes)
    };
    let mixed = plan(&unnamed(vec![node(1), upgraded(2), node(3)]));
    assert_eq!(mixed.target, Some(program("1.1.0", 3)));
    assert_eq!(order(&mixed), ["3", ">2", "1"]);
    assert_eq!((mixed.level_in_use, mixed.level_afterwards), (2, 3));
    // Versions are compared as numbers: 1.0.10 is newer than 1.0.9.
    let patch = |id, version: &str| Node {
        version: version.to_owned(),
        ..node(id)
    };
    let plan_of = plan(&unnamed(vec![
        patch(1, "1.0.9"),
        patch(2, "1.0.10"),
        patch(3, "1.0.9"),
    ]));
    assert_eq!(plan_of.target, Some(program("1.0.10", 2)));
    let alike = plan(&unnamed(three()));
    assert_eq!(alike.target, None);
    assert_eq!(order(&alike), ["2", "3", ">2", "1"]);
}

#[test]
fn what_stands_against_it_is_named() {
    let nameless = Node {
        feature_level: 0,
        version: String::new(),
        ..node(3)
    };
    let late = Node {
        behind: Some(5_000),
        ..node(2)
    };
    let five = vec![node(1), node(2), node(3), node(4), silent(node(5))];
    for (what, nodes, obstacles, notes) in [
        (
            "a voter is away",
            vec![node(1), node(2), silent(node(3))],
            &["node 3 is not heard"][..],
            &[][..],
        ),
        ("one of five is away", five, &[], &["node 5 is not heard"]),
        (
            "a node is behind",
            vec![node(1), late, node(3)],
            &["node 2 is 5000 entries behind"],
            &[],
        ),
        (
            "a node says nothing of itself",
            vec![node(1), node(2), nameless],
            &["the program of node 3 is not known"],
            &[],
        ),
        ("two voters", vec![node(1), node(2)], &[], &["two voters"]),
        ("one voter", vec![node(1)], &[], &["one voter"]),
    ] {
        let plan = plan(&facts(nodes));
        assert_says(&plan.obstacles, obstacles, what);
        assert_says(&plan.notes, notes, what);
    }
}

#[test]
fn a_level_goes_up_by_one_and_never_down() {
    let raised = || vec![upgraded(1), upgraded(2), upgraded(3)];
    let going_back = || vec![node(1), upgraded(2), node(3)];
    for (what, nodes, target, obstacles, steps) in [
        ("the next level", three(), program("1.1.0", 3), &[][..], 4),
        ("the same level", three(), program("1.0.1", 2), &[], 4),
        (
            "two levels at once",
            three(),
            program("2.0.0", 4),
            &["2.0.0 (level 4) is too new"],
            4,
        ),
        (
            "back after the level was raised",
            raised(),
            program("1.0.0", 2),
            &["1.0.0 (level 2) is too old"],
            4,
        ),
        (
            "back before the level was raised",
            going_back(),
            program("1.0.0", 2),
            &[],
            1,
        ),
    ] {
        let plan = plan(&UpgradeFacts {
            program: Some(target),
            ..facts(nodes)
        });
        assert_says(&plan.obstacles, obstacles, what);
        assert_eq!(plan.steps.len(), steps, "{what}");
    }
}

#[test]
fn a_backup_is_needed_where_it_is_the_only_way_back() {
    let patch = program("1.0.1", 2);
    let next = program("1.1.0", 3);
    for (what, target, backup, obstacles, notes) in [
        ("fresh", &next, Ok(Some(NOW_S - 60)), &[][..], &[][..]),
        (
            "too old",
            &next,
            Ok(Some(NOW_S - 30 * 3600)),
            &["30 hours old"],
            &[],
        ),
        ("none", &next, Ok(None), &["there is no backup"], &[]),
        (
            "unknown",
            &next,
            Err("nobody asked the leader".to_owned()),
            &["nobody asked the leader"],
            &[],
        ),
        (
            "none, and the level stays",
            &patch,
            Ok(None),
            &[],
            &["there is no backup"],
        ),
    ] {
        let plan = plan(&UpgradeFacts {
            program: Some(target.clone()),
            backup,
            ..facts(three())
        });
        assert_says(&plan.obstacles, obstacles, what);
        assert_says(&plan.notes, notes, what);
    }
}

#[test]
fn without_a_leader_there_is_no_plan() {
    let mut leaderless = facts(three());
    leaderless.cluster.leader = 0;
    // A follower that answers knows nothing of the others.
    let mut of_a_follower = facts(three());
    for node in &mut of_a_follower.cluster.nodes {
        (node.behind, node.heard_at) = (None, None);
    }
    for facts in [leaderless, of_a_follower] {
        let plan = plan(&facts);
        assert_says(&plan.obstacles, &["no leader answers"], "no leader");
        assert!(plan.steps.is_empty());
    }
}

#[test]
fn a_held_clock_is_noted() {
    let mut held = facts(three());
    held.cluster.time = Some(ClusterTime {
        time: Some(at(NOW_S)),
        held: Some(at(NOW_S + 86_400)),
        held_node: 2,
        ..ClusterTime::default()
    });
    let plan = plan(&held);
    assert_says(&plan.notes, &["the clock of node 2 jumped"], "held");
    assert_says(&plan.obstacles, &[], "held");
}

#[test]
fn progress_names_the_next_node() {
    use NodeUpgradeState::{Away, CatchingUp, Next, Upgraded, Waiting};

    let late = Node {
        behind: Some(300),
        ..upgraded(2)
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
            (false, vec![Waiting, CatchingUp, Next]),
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
