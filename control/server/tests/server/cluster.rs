//! Three nodes as processes: joining, failing, coming back, leaving, and what is refused.

use std::time::{Duration, Instant};

use proto_public::metalmesh::admin::v1::{
    ClusterServiceRemoveRequest, ClusterServiceTransferLeaderRequest, NodeRole,
};
use tonic::Code;

use crate::daemon::PATIENCE;
use crate::nodes::{Cluster, Node, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_live_through_the_loss_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    assert_eq!(cluster.join(&dir.path().join("2"), 0).await, 2);
    // Asked for at a follower: a client need not know the leader.
    assert_eq!(cluster.join(&dir.path().join("3"), 1).await, 3);
    let status = cluster.may_fail(2, 1).await;
    assert_eq!(status.nodes.len(), 3, "{status:?}");
    assert_eq!(status.feature_level, control_state::FEATURE_LEVEL);

    let mut written = Vec::new();
    for at in 0..3 {
        let id = cluster.write(at, &format!("by-{at}")).await.unwrap();
        for reader in 0..3 {
            cluster.reads(reader, &id).await.unwrap();
        }
        written.push(id);
    }

    let leader = usize::try_from(cluster.status(0).await.leader).unwrap() - 1;
    let rest: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    cluster.nodes[leader].kill();
    let killed = Instant::now();
    let after = eventually("write without the leader", || async {
        cluster
            .write(rest[0], "after")
            .await
            .map_err(|e| e.to_string())
    })
    .await;
    println!("a new leader acknowledged after {:?}", killed.elapsed());
    written.push(after);
    for id in &written {
        cluster.reads(rest[1], id).await.unwrap();
    }
    // The dead one counts as a failure.
    cluster.may_fail(rest[0], 0).await;
    // Removing the other follower now would leave one of two.
    let leads = cluster.status(rest[0]).await.leader;
    let follower = rest.iter().map(|at| *at as u64 + 1).find(|id| *id != leads);
    let request = ClusterServiceRemoveRequest {
        id: follower.unwrap(),
        dry_run: false,
    };
    let refused = eventually("refusal", || async {
        match cluster.client(rest[0]).clusters().remove(request).await {
            Err(e) if e.message().contains("are needed to write") => Ok(e),
            Err(e) => Err(e.to_string()),
            Ok(_) => panic!("the cluster removed its own majority"),
        }
    })
    .await;
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("MM-1801"), "{refused}");

    cluster.nodes[leader].start();
    cluster.nodes[leader].wait_said("ready ");
    for id in &written {
        cluster.reads(leader, id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_told_to_stop_hands_leadership_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    cluster.join(&dir.path().join("2"), 0).await;
    cluster.join(&dir.path().join("3"), 0).await;
    let leader = usize::try_from(cluster.status(0).await.leader).unwrap() - 1;
    let told = Instant::now();
    assert!(cluster.nodes[leader].terminate());
    let rest = (0..3).find(|at| *at != leader).unwrap();
    cluster.wrote(rest, "after").await;
    println!(
        "a write was acknowledged {:?} after SIGTERM",
        told.elapsed()
    );
    let log = cluster.nodes[leader].log();
    let handed_over = "leadership was handed over before the stop";
    assert!(log.contains(handed_over), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_moves_and_a_removed_node_stays_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    cluster.join(&dir.path().join("2"), 0).await;
    cluster.join(&dir.path().join("3"), 0).await;
    let lead = |id| ClusterServiceTransferLeaderRequest { id };
    let remove = |id, dry_run| ClusterServiceRemoveRequest { id, dry_run };
    let moved = cluster.client(1).clusters().transfer_leader(lead(3)).await;
    moved.unwrap();
    // The node that was asked may hear of it a moment later.
    eventually("leadership of node 3", || async {
        match cluster.status(1).await.leader {
            3 => Ok(()),
            other => Err(format!("node {other} leads")),
        }
    })
    .await;
    cluster.wrote(0, "led by 3").await;

    let mut clusters = cluster.client(0).clusters();
    let refused = clusters.remove(remove(3, false)).await.unwrap_err();
    assert!(refused.message().contains("node 3 leads"), "{refused}");
    let refused = clusters.remove(remove(9, false)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    clusters.remove(remove(2, true)).await.unwrap();
    assert_eq!(cluster.node(0, 2).await.role(), NodeRole::Voter, "dry run");
    let removed = clusters
        .remove(remove(2, false))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(removed.node.unwrap().role(), NodeRole::Removed);
    cluster.wrote(0, "without 2").await;

    // It comes back with its old data: nobody talks to it, and it does not disturb.
    let term = cluster.status(0).await.term;
    cluster.nodes[1].kill();
    cluster.nodes[1].start();
    let until = Instant::now() + PATIENCE;
    while !cluster.nodes[1]
        .log()
        .contains("was removed from the cluster")
    {
        assert!(Instant::now() < until, "{}", cluster.nodes[1].log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let until = Instant::now() + PATIENCE;
    let ended = cluster.nodes[1].child.as_mut().unwrap();
    while ended.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "a removed node goes on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(cluster.status(0).await.term, term);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_node_catches_up_by_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let more = "[store]\nsnapshot_every_entries = 20\nkeep_entries = 0";
    let mut cluster = Cluster::form_with(dir.path(), more);
    let mut last = String::new();
    for n in 0..60 {
        last = cluster.write(0, &format!("project-{n}")).await.unwrap();
    }
    cluster.join(&dir.path().join("2"), 0).await;
    cluster.reads(1, &last).await.unwrap();
    let log = cluster.nodes[1].log();
    assert!(log.contains("installing a snapshot"), "{log}");
    cluster.nodes[1].kill();
    cluster.nodes[1].start();
    cluster.nodes[1].wait_said("ready ");
    cluster.reads(1, &last).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_are_for_one_key_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    let (mut left, mut right) = (
        Node::new(dir.path().join("left"), true, ""),
        Node::new(dir.path().join("right"), true, ""),
    );
    left.start();
    right.start();
    let (id, ticket) = cluster.invite(0, &left.key()).await.unwrap();
    // Somebody else's ticket.
    right.key();
    right.give_ticket(&ticket);
    let until = Instant::now() + PATIENCE;
    while !right.log().contains("bound to another key") {
        assert!(Instant::now() < until, "{}", right.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        cluster.status(0).await.nodes.len(),
        2,
        "one member, one invited"
    );
    left.give_ticket(&ticket);
    left.wait_said("ready ");
    assert_eq!(cluster.node(0, id).await.role(), NodeRole::Learner);

    // A second init, and one of a node that is to join.
    cluster.nodes[0].kill();
    let second = cluster.nodes[0].init();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        !second.status.success() && said.contains("in use already"),
        "{said}"
    );
    let joining = right.init();
    let said = String::from_utf8_lossy(&joining.stderr).into_owned();
    assert!(
        !joining.status.success() && said.contains("peers.join"),
        "{said}"
    );

    // A wiped node is another node: its old place is not taken again.
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    left.kill();
    std::fs::remove_dir_all(left.dir.join("data")).unwrap();
    left.start();
    let (again, ticket) = cluster.invite(0, &left.key()).await.unwrap();
    assert!(again > id);
    left.give_ticket(&ticket);
    left.wait_said("ready ");
    assert_eq!(cluster.node(0, again).await.role(), NodeRole::Learner);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_cluster_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Cluster::form(&dir.path().join("ours"));
    let mut theirs = Cluster::form(&dir.path().join("theirs"));
    drop(ours);
    // The same directory under another name, and under another number.
    theirs.nodes[0].kill();
    let path = theirs.nodes[0].dir.join("node.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    for (more, wanted) in [
        ("cluster = \"west\"\n", "\"west\""),
        ("node_id = 7\n", "node 7"),
    ] {
        std::fs::write(&path, format!("{more}{config}")).unwrap();
        let refused = theirs.nodes[0].command(&["token"]);
        let mut refused = refused;
        let refused = refused
            .args(["--token-file", "/dev/null"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{said}");
        assert!(
            said.contains("belongs to node 1") && said.contains(wanted),
            "{said}"
        );
    }
}
