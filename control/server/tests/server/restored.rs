//! A cluster that was restored, and nodes of the one that it was.

use std::path::Path;
use std::process::Command;

use proto_public::metalmesh::admin::v1::NodeRole;

use crate::cli::{Cli, metalmesh};
use crate::daemon::program;
use crate::nodes::{Cluster, Node};

/// All that says who a directory is, and what is in its log.
fn identity(node: &Node) -> Vec<Vec<u8>> {
    let data = node.dir.join("data");
    ["NODE", "seal.key", "data.key"]
        .map(|name| std::fs::read(data.join(name)).unwrap())
        .to_vec()
}

fn restore(file: &Path, into: &Path) {
    let restored = Command::new(program())
        .arg("restore")
        .arg(file)
        .arg("--data-dir")
        .arg(into)
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_the_old_cluster_is_refused_by_the_restored_one() {
    let Some(metalmesh) = metalmesh() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    cluster.join(&dir.path().join("2"), 0).await;
    cluster.join(&dir.path().join("3"), 0).await;
    cluster.write(1, "before").await.unwrap();
    let old = cluster.status(0).await;
    let cli = Cli {
        program: metalmesh,
        config: cluster.nodes[0].dir.join("context.yaml"),
    };
    let file = dir.path().join("backup");
    cli.ok(&["cluster", "backup", file.to_str().unwrap()]);
    cluster.write(2, "too-late").await.unwrap();

    for node in &mut cluster.nodes {
        node.kill();
    }
    let data = cluster.nodes[0].dir.join("data");
    std::fs::rename(&data, data.with_file_name("data-old")).unwrap();
    restore(&file, &data);
    cluster.nodes[0].start();
    cluster.nodes[0].wait_said("ready ");
    let restored = cluster.status(0).await;
    assert_ne!(restored.cluster_id, old.cluster_id);
    assert_eq!(restored.nodes.len(), 1, "{restored:?}");

    // Somebody starts an old node: its certificate is good, its address is known.
    let before = identity(&cluster.nodes[1]);
    cluster.nodes[1].start();
    let wanted = format!(
        "node 2 belongs to cluster {}, this node to cluster {}: it must be joined to this \
         cluster with an empty data directory, or not at all",
        old.cluster_id, restored.cluster_id
    );
    cluster.nodes[1].wait_logged("a control node refuses this one", 1);
    for at in [0, 1] {
        cluster.nodes[at].wait_logged(&wanted, 1);
    }
    // A ticket does not help it as long as it has the old data.
    let key = cluster.nodes[1].fingerprint();
    let (id, ticket) = cluster.invite(0, &key).await.unwrap();
    cluster.nodes[1].kill();
    cluster.nodes[1].give_ticket(&ticket);
    cluster.nodes[1].start();
    cluster.nodes[1].wait_logged(&wanted, 2);
    cluster.nodes[1].kill();
    assert_eq!(identity(&cluster.nodes[1]), before);
    assert_eq!(cluster.node(0, id).await.role(), NodeRole::Invited);
    let after = cluster.status(0).await;
    assert_eq!((after.leader, after.term), (1, restored.term));
    let there = cluster.projects(0).await;
    assert!(
        there.contains("before") && !there.contains("too-late"),
        "{there:?}"
    );

    // The remedy that the message names.
    std::fs::remove_dir_all(cluster.nodes[1].dir.join("data")).unwrap();
    let mut again = cluster.nodes.swap_remove(1);
    again.kill();
    cluster.nodes.truncate(1);
    let id = cluster.learn(again, 0).await;
    cluster.promote(id).await;
    cluster.write(1, "after").await.unwrap();
    assert!(cluster.projects(1).await.contains("before"));
}
