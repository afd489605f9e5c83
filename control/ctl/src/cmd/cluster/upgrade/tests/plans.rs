//! The order of the nodes, and what stands against an upgrade.

use proto_public::metalmesh::admin::v1::{ClusterTime, Node, NodeRole};

use super::{NOW_S, at, cluster, node, program, silent, three, upgraded};
use crate::cmd::cluster::upgrade::facts::UpgradeFacts;
use crate::cmd::cluster::upgrade::plan::{UpgradePlan, UpgradeStep, plan};
use crate::cmd::cluster::upgrade::remark::UpgradeRemark;

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
    let learner = Node {
        role: NodeRole::Learner.into(),
        ..node(4)
    };
    for (what, nodes, obstacles, notes) in [
        (
            "a voter is away",
            vec![node(1), node(2), silent(node(3))],
            &["node 3 is not heard"][..],
            &[][..],
        ),
        ("one of five is away", five, &["node 5 is not heard"], &[]),
        (
            "a node without a vote is away",
            vec![node(1), node(2), node(3), silent(learner)],
            &[],
            &["node 4 is not heard"],
        ),
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
fn a_dead_voter_is_not_taken_for_one_that_runs_the_program() {
    // Its record says that it runs the new program: it did when it was heard last.
    let away = vec![upgraded(1), upgraded(2), silent(upgraded(3))];
    let found = plan(&facts(away));
    assert!(found.steps.is_empty());
    assert_says(&found.obstacles, &["node 3 is not heard"], "upgraded");
    let mend = &found.obstacles[0].mend;
    assert!(mend.ends_with("metalmesh cluster remove 3"), "{mend}");
    // All others are silent for equally long, as for a leader that is cut off.
    let alone = plan(&facts(vec![node(1), silent(node(2)), silent(node(3))]));
    assert_says(&alone.obstacles, &["node 2, 3 is not heard"], "cut off");
    // A leader that says nothing of itself gives no time to measure by.
    let mut timeless = facts(vec![node(1), silent(node(2)), silent(node(3))]);
    timeless.cluster.nodes[0].heard_at = None;
    let timeless = plan(&timeless);
    assert_says(&timeless.obstacles, &["node 2, 3 is not heard"], "no time");
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
        (
            "of a clock that is a little ahead",
            &next,
            Ok(Some(NOW_S + 3_600)),
            &[],
            &[],
        ),
        (
            "of a wrong clock",
            &next,
            Ok(Some(NOW_S + 48 * 3600)),
            &["48 hours ahead"],
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
