//! Five nodes, and what a cluster refuses for its own good.

use std::collections::BTreeSet;

use proto_public::metalmesh::admin::v1::{ClusterServicePromoteRequest, NodeRole};
use tonic::Code;

use crate::nodes::{Cluster, Node, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn five_nodes_go_on_without_two() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    for number in 2..=5 {
        let node = Node::new(dir.path().join(number.to_string()), true, "");
        // Each is asked for at the one that joined last.
        let at = cluster.nodes.len() - 1;
        assert_eq!(cluster.learn(node, at).await, number);
        assert_eq!(cluster.node(0, number).await.role(), NodeRole::Learner);
    }
    for number in 2..=5 {
        cluster.promote(number).await;
    }
    let status = cluster.may_fail(4, 2).await;
    assert_eq!(status.nodes.len(), 5, "{status:?}");

    let writer = cluster.writer();
    writer.progress(30).await;
    let leader = usize::try_from(status.leader).unwrap() - 1;
    let other = (leader + 2) % 5;
    cluster.nodes[leader].kill();
    cluster.nodes[other].kill();
    writer.progress(30).await;

    // Three of five: to take another one out would leave two of four.
    let left: Vec<usize> = (0..5).filter(|at| ![leader, other].contains(at)).collect();
    let leads = cluster.may_fail(left[0], 0).await.leader;
    let follower = left.iter().map(|at| *at as u64 + 1).find(|id| *id != leads);
    let refused = eventually("refusal", || async {
        match cluster.remove(left[0], follower.unwrap(), false).await {
            Err(e) if e.message().contains("are needed to write") => Ok(e),
            Err(e) => Err(e.to_string()),
            Ok(()) => panic!("the cluster removed its own majority"),
        }
    })
    .await;
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("MM-1801"), "{refused}");
    writer.progress(10).await;

    for at in [leader, other] {
        cluster.nodes[at].start();
    }
    for at in [leader, other] {
        cluster.nodes[at].wait_said("ready ");
    }
    writer.progress(30).await;
    let acknowledged = writer.finish().await;
    println!("{} writes were acknowledged", acknowledged.len());
    for at in 0..5 {
        let there = cluster.projects(at).await;
        let lost: BTreeSet<_> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "node {} has lost {lost:?}", at + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_that_lags_gets_no_vote() {
    /// More than a learner may be behind.
    const ENTRIES: usize = 1100;
    /// So slow that a snapshot takes minutes.
    const SLOW: &str = "snapshot_bytes_per_second = 1000\n";
    let dir = tempfile::tempdir().unwrap();
    let more = "[store]\nsnapshot_every_entries = 500\nkeep_entries = 0";
    let first = Node::new(dir.path().join("1"), false, more);
    let config = first.dir.join("node.toml");
    let fast = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{fast}{SLOW}")).unwrap();
    let mut cluster = Cluster::form_of(first);
    cluster.allow_projects(100_000).await;
    let writer = cluster.writer();
    writer.progress(ENTRIES).await;
    let written = writer.finish().await;

    let mut learner = Node::new(dir.path().join("2"), true, "");
    learner.start();
    let (id, ticket) = cluster.invite(0, &learner.key()).await.unwrap();
    learner.give_ticket(&ticket);
    cluster.nodes.push(learner);
    let promote = || async {
        let request = ClusterServicePromoteRequest { id };
        cluster.client(0).clusters().promote(request).await
    };
    let refused = eventually("refusal", || async {
        match promote().await {
            Err(e) if e.message().contains("entries behind") => Ok(e),
            Err(e) => Err(e.to_string()),
            Ok(_) => panic!("a learner without the state got a vote"),
        }
    })
    .await;
    assert_eq!(refused.code(), Code::FailedPrecondition);
    for said in ["MM-1801", "node 2 is", "1000 are allowed", "wait until"] {
        assert!(refused.message().contains(said), "{refused}");
    }
    assert_eq!(cluster.node(0, id).await.role(), NodeRole::Learner);
    // It is refused for as long as it lags, and the cluster is none the worse for it.
    cluster.wrote(0, "meanwhile").await;

    cluster.nodes[0].kill();
    std::fs::write(&config, fast).unwrap();
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    cluster.nodes[1].wait_said("ready ");
    cluster.promote(id).await;
    let there = cluster.projects(1).await;
    assert!(written.is_subset(&there) && there.contains("meanwhile"));
}
