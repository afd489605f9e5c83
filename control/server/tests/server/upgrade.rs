//! Golden and grown data directories under today's program: nothing is lost on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use control_state::FEATURE_LEVEL;
use proto_identity::ticket::JoinTicket;
use proto_public::metalmesh::admin::v1::NodeRole;

use crate::nodes::{Cluster, Node};

/// A golden file of data directories of format 2.
fn golden(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server");
    tests.join("golden").join(name)
}

fn tar(flags: &str, archive: &Path, dir: &Path) {
    let mut command = Command::new("tar");
    command.arg(flags).arg(archive).arg("-C").arg(dir);
    if flags.contains('c') {
        command.arg("data");
    }
    assert!(command.status().unwrap().success());
}

/// SHA-256 of the root certificate that nodes are invited with.
async fn root(cluster: &Cluster) -> String {
    let (_, ticket) = cluster.invite(0, &"ab".repeat(32)).await.unwrap();
    JoinTicket::parse(&ticket).unwrap().roots.join("\n")
}

/// The golden directory is what a killed metalmeshd of format 2 left: two starts and two projects,
/// the last of them in the log alone. It is never made anew; where the files are missing,
/// `GOLDEN=add` makes them.
async fn add_golden_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form_of(Node::alone(dir.path().join("1"), ""));
    cluster.write(0, "web").await.unwrap();
    cluster.nodes[0].kill();
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    cluster.write(0, "late").await.unwrap();
    cluster.nodes[0].kill();
    let archive = golden("data.tar.gz");
    std::fs::create_dir_all(archive.parent().unwrap()).unwrap();
    tar("-czf", &archive, &cluster.nodes[0].dir);
    cluster.nodes[0].give_peers(false);
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    std::fs::write(golden("root.sha256"), root(&cluster).await + "\n").unwrap();
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
    let status = cluster.may_fail(0, 1).await;
    assert_eq!(status.feature_level, FEATURE_LEVEL, "{status:?}");
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
async fn a_golden_directory_goes_on_and_grows() {
    let archive = golden("data.tar.gz");
    if !archive.exists() {
        let adds = std::env::var("GOLDEN").is_ok_and(|wanted| wanted == "add");
        assert!(adds, "{} is missing; set GOLDEN=add", archive.display());
        add_golden_directory().await;
    }
    let golden_root = std::fs::read_to_string(golden("root.sha256")).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::alone(dir.path().join("1"), "");
    tar("-xzf", &archive, &node.dir);
    let data = node.dir.join("data");
    let keys = ["seal.key", "data.key", "NODE"].map(|name| data.join(name));
    let before = keys.each_ref().map(|path| std::fs::read(path).unwrap());
    let token = new_token(&node, "token");
    node.start();
    node.wait_said("ready ");
    let mut cluster = Cluster::of(node, token);
    assert_eq!(cluster.projects(0).await, names(&["late", "web"]));
    cluster.write(0, "today").await.unwrap();
    // A node without peers says how it gets company.
    let refused = cluster.invite(0, &"ab".repeat(32)).await.unwrap_err();
    assert!(refused.message().contains("MM-1801"), "{refused}");

    cluster.nodes[0].kill();
    cluster.nodes[0].give_peers(false);
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    let found = root(&cluster).await;
    assert_eq!(found, golden_root.trim(), "the authority is the old one");
    let after = keys.each_ref().map(|path| std::fs::read(path).unwrap());
    assert_eq!(after, before);
    cluster.remove(0, 2, false).await.unwrap();
    grow(&mut cluster, dir.path(), &["late", "today", "web"]).await;
}

/// A directory of another format is refused with the remedy, and nothing in it changes.
#[test]
fn a_directory_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::alone(dir.path().join("1"), "");
    tar("-xzf", &golden("data.tar.gz"), &node.dir);
    let data = node.dir.join("data");
    let identity = data.join("NODE");
    let text = std::fs::read_to_string(&identity).unwrap();
    let older = text.replace("\"format\": 2", "\"format\": 1");
    assert_ne!(older, text);
    std::fs::write(&identity, older).unwrap();
    let before = files(&data);
    let refused = node.command(&[]).output().unwrap();
    assert!(!refused.status.success());
    let output = [refused.stdout, refused.stderr].concat();
    let output = String::from_utf8_lossy(&output);
    assert!(output.contains("has format 1"), "{output}");
    assert_eq!(files(&data), before);
}

/// The files below a directory and their bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
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
