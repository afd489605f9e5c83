//! Two programs in one cluster: this one, and one of the next feature level.
//!
//! To the program of the next level, creating a size is a command of that level, which this one
//! cannot even read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use control_state::FEATURE_LEVEL;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::{Code, Status};

use crate::daemon::program;
use crate::nodes::{Cluster, Node, eventually};

/// The level of this program, and of that one.
const NOW: u32 = FEATURE_LEVEL;
const NEXT: u32 = FEATURE_LEVEL + 1;

/// The program of the next level, where it was built.
pub(crate) fn next() -> Option<PathBuf> {
    let path = Path::new(program()).with_file_name("metalmeshd-next");
    if !path.exists() {
        println!(
            "SKIPPED: {} is not built; cargo build -p control-server --features next-level \
             --bin metalmeshd-next",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// A command that came with the next level, where the node at `at` has its program.
async fn create_size(cluster: &Cluster, at: usize, cores: u64) -> Result<(), Status> {
    let constraint = api::SizeConstraint {
        r#type: api::SizeConstraintType::Cores.into(),
        min: cores,
        max: cores,
        ..Default::default()
    };
    let size = api::Size {
        id: format!("c{cores}"),
        constraints: vec![constraint],
        ..Default::default()
    };
    let request = admin::SizeServiceCreateRequest { size: Some(size) };
    let created = cluster.client(at).admin_sizes().create(request).await;
    created.map(drop)
}

async fn sizes(cluster: &Cluster, at: usize) -> BTreeSet<String> {
    let listed = eventually("list of sizes", || async {
        let request = api::SizeServiceListRequest { query: None };
        let listed = cluster.client(at).sizes().list(request).await;
        listed
            .map(tonic::Response::into_inner)
            .map_err(|e| e.to_string())
    });
    listed.await.sizes.into_iter().map(|it| it.id).collect()
}

fn assert_off(refused: Result<(), Status>) {
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    for said in [
        "MM-1802",
        &format!("CreateSize needs feature level {NEXT}, but a control node knows only {NOW}"),
        "upgrade every control node",
    ] {
        assert!(refused.message().contains(said), "{refused}");
    }
}

async fn assert_level(cluster: &Cluster, level: u32, of_nodes: [u32; 3]) {
    for at in 0..3 {
        let status = cluster.status(at).await;
        assert_eq!(status.feature_level, level, "{status:?}");
        let levels: Vec<_> = status.nodes.iter().map(|it| it.feature_level).collect();
        assert_eq!(levels, of_nodes);
    }
}

impl Cluster {
    /// Restarts a node with another program on the same data.
    fn restart(&mut self, at: usize, program: &Path) {
        self.nodes[at].kill();
        self.nodes[at].program = program.to_owned();
        self.nodes[at].start();
        self.nodes[at].wait_said("ready ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_programs_run_mixed_until_the_last_is_upgraded() {
    let Some(next) = next() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    cluster.join(&dir.path().join("2"), 0).await;
    create_size(&cluster, 0, 1).await.unwrap();
    // The third one is newer from the beginning: it gets what the others wrote.
    let mut third = Node::new(dir.path().join("3"), true, "");
    third.program.clone_from(&next);
    let third = cluster.learn(third, 0).await;
    cluster.promote(third).await;
    assert_level(&cluster, NOW, [NOW, NOW, NEXT]).await;

    // Whoever leads: writes and reads go both ways, and what only one program knows stays off.
    for (leader, cores) in [(3, 2), (1, 3)] {
        cluster.lead(0, leader).await;
        for at in 0..3 {
            let name = format!("led-by-{leader}-through-{}", at + 1);
            cluster.wrote(at, &name).await;
            for reader in 0..3 {
                assert!(cluster.projects(reader).await.contains(&name));
            }
        }
        assert_off(create_size(&cluster, 2, 9).await);
        create_size(&cluster, 1, cores).await.unwrap();
    }
    for at in 0..3 {
        assert_eq!(sizes(&cluster, at).await, named(&["c1", "c2", "c3"]));
    }

    // One after the other is upgraded while somebody writes.
    let writer = cluster.writer();
    writer.progress(20).await;
    cluster.restart(0, &next);
    writer.progress(20).await;
    assert_level(&cluster, NOW, [NEXT, NOW, NEXT]).await;
    assert_off(create_size(&cluster, 0, 9).await);
    cluster.restart(1, &next);
    writer.progress(20).await;
    assert_level(&cluster, NEXT, [NEXT; 3]).await;
    for (at, cores) in [(0, 4), (1, 5), (2, 6)] {
        create_size(&cluster, at, cores).await.unwrap();
    }
    let acknowledged = writer.finish().await;
    println!("{} writes were acknowledged", acknowledged.len());
    for at in 0..3 {
        let all = named(&["c1", "c2", "c3", "c4", "c5", "c6"]);
        assert_eq!(sizes(&cluster, at).await, all);
        let there = cluster.projects(at).await;
        let lost: BTreeSet<_> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "node {} has lost {lost:?}", at + 1);
    }
    no_way_back(&mut cluster, &next).await;
}

/// A node cannot go back to the old program, and is unharmed by the attempt.
async fn no_way_back(cluster: &mut Cluster, next: &Path) {
    // With nothing new to read, it is refused by what it says of itself.
    assert!(cluster.nodes[1].terminate());
    cluster.nodes[1].program = program().into();
    cluster.nodes[1].start();
    assert!(!cluster.nodes[1].wait_ended());
    let log = cluster.nodes[1].log();
    assert!(
        log.contains(&format!(
            "knows feature level {NOW}, the cluster uses {NEXT}"
        )),
        "{log}"
    );
    assert!(log.contains("install a newer metalmeshd"), "{log}");
    // With a command that it cannot read, it stops rather than to go on without it.
    create_size(cluster, 0, 7).await.unwrap();
    cluster.nodes[1].start();
    assert!(!cluster.nodes[1].wait_ended());
    let log = cluster.nodes[1].log();
    assert!(
        log.contains(&format!(
            "is of feature level {NEXT}, this program knows up to {NOW}"
        )),
        "{log}"
    );
    cluster.restart(1, next);
    assert!(sizes(cluster, 1).await.contains("c7"));
    assert_level(cluster, NEXT, [NEXT; 3]).await;
    // Nor does an old one join.
    let dir = cluster.nodes[0].dir.with_file_name("4");
    let mut late = Node::new(dir, true, "");
    late.start();
    let (_, ticket) = cluster.invite(0, &late.key()).await.unwrap();
    late.give_ticket(&ticket);
    late.wait_logged(
        &format!("knows feature level {NOW}, the cluster uses {NEXT}"),
        1,
    );
}

fn named(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}
