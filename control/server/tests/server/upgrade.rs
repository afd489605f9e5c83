//! Directories of earlier days under today's program: nothing is lost on the way.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use control_state::FEATURE_LEVEL;
use proto_identity::ticket::JoinTicket;
use proto_public::metalmesh::admin::v1::NodeRole;

use crate::nodes::{Cluster, Node};

/// What metalmeshd of commit 4dfb6d1 left behind when it was killed: two starts, a tenant, a
/// partition, a ticket and two projects, the last of them in the log alone. It had no data key
/// and knew no peers. Never made anew.
const FIRST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/server/first/data.tar.gz"
);
/// SHA-256 of its root certificate.
const FIRST_ROOT: &str = "5ecd537bd33261314569ed90ec373bfe5455abfb838c404e0f3391fc75515fff";

fn unpack(into: &Path) {
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(FIRST)
        .arg("-C")
        .arg(into)
        .status()
        .unwrap();
    assert!(unpacked.success());
}

fn new_token(node: &Node, name: &str) -> String {
    let file = node.dir.join(name);
    let mut command = node.command(&["token"]);
    let made = command.arg("--token-file").arg(&file).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

/// Two nodes join at the first; all have the projects, and any of them may write.
async fn grow(cluster: &mut Cluster, dir: &Path, before: &[&str]) {
    let second = cluster.join(&dir.join("2"), 0).await;
    cluster.join(&dir.join("3"), 0).await;
    for at in 0..3 {
        assert_eq!(cluster.projects(at).await, names(before));
    }
    let status = cluster.status(0).await;
    assert_eq!(
        (status.may_fail, status.feature_level),
        (1, FEATURE_LEVEL),
        "{status:?}"
    );
    // The first one is not needed any more.
    cluster.lead(0, second).await;
    cluster.nodes[0].kill();
    cluster.wrote(2, "without-the-first").await;
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    let all = [before, &["without-the-first"]].concat();
    for at in 0..3 {
        assert_eq!(cluster.projects(at).await, names(&all));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_the_first_version_goes_on_and_grows() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::alone(dir.path().join("1"), "");
    unpack(&node.dir);
    let data = node.dir.join("data");
    let seal = std::fs::read(data.join("seal.key")).unwrap();
    let identity = std::fs::read(data.join("NODE")).unwrap();
    assert!(
        !data.join("data.key").exists(),
        "it is of the first version"
    );
    let token = new_token(&node, "token");
    node.start();
    node.wait_said("ready ");
    let mut cluster = Cluster::of(node, token);
    assert_eq!(cluster.projects(0).await, names(&["late", "web"]));
    cluster.write(0, "today").await.unwrap();
    // A node alone says how it gets company.
    let refused = cluster.invite(0, &"ab".repeat(32)).await.unwrap_err();
    assert!(refused.message().contains("MM-1801"), "{refused}");

    cluster.nodes[0].kill();
    cluster.nodes[0].give_peers(false);
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    let (_, ticket) = cluster.invite(0, &"ab".repeat(32)).await.unwrap();
    let roots = JoinTicket::parse(&ticket).unwrap().roots;
    assert_eq!(roots, [FIRST_ROOT], "the authority is the old one");
    assert_eq!(std::fs::read(data.join("seal.key")).unwrap(), seal);
    assert_eq!(std::fs::read(data.join("NODE")).unwrap(), identity);
    cluster.remove(0, 2, false).await.unwrap();
    grow(&mut cluster, dir.path(), &["late", "today", "web"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_alone_becomes_the_first_of_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form_of(Node::alone(dir.path().join("1"), ""));
    for name in ["one", "two"] {
        cluster.write(0, name).await.unwrap();
    }
    assert_eq!(cluster.node(0, 1).await.role(), NodeRole::Leader);
    cluster.nodes[0].kill();
    cluster.nodes[0].give_peers(false);
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    grow(&mut cluster, dir.path(), &["one", "two"]).await;
}
