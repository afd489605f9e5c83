//! Snapshots whose transfer is interrupted by a crash of the receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::SinkExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use super::mesh::{Mesh, fill, only_snapshot, wait_for};
use super::*;
use crate::disk::RealDisk;
use crate::raft_types::LogId;
use crate::snapshot::SnapshotStore;
use crate::snapshot::file::{PIECE_BYTES, SnapshotFile, SnapshotManifest};
use crate::{Channel, ClusterMember, Lane, StartMode, Transport};

/// Approximate size of the snapshot, bytes; its content does not compress.
const TOTAL: u64 = 8 * 500_000;

/// Stops the first snapshot at about half, and breaks its channel when told to.
#[derive(Debug)]
struct Halfway {
    inner: Arc<dyn Transport>,
    snapshots: Arc<AtomicUsize>,
    may_break: Arc<Semaphore>,
}

impl Transport for Halfway {
    fn open(
        &self,
        member: &ClusterMember,
        lane: Lane,
    ) -> BoxFuture<'static, std::io::Result<Channel>> {
        let opening = self.inner.open(member, lane);
        let (snapshots, may_break) = (self.snapshots.clone(), self.may_break.clone());
        Box::pin(async move {
            let channel = opening.await?;
            if lane != Lane::Snapshot || snapshots.fetch_add(1, Ordering::SeqCst) > 0 {
                return Ok(channel);
            }
            let mut sent = 0;
            let outgoing = channel.outgoing.with(move |frame| {
                sent += 1;
                let breaks =
                    (sent > 2 + TOTAL as usize / PIECE_BYTES / 2).then(|| may_break.clone());
                async move {
                    let Some(may_break) = breaks else {
                        return Ok(frame);
                    };
                    may_break
                        .acquire()
                        .await
                        .map_err(std::io::Error::other)?
                        .forget();
                    Err(std::io::Error::other("the wire broke"))
                }
            });
            let outgoing = Box::pin(outgoing);
            Ok(Channel {
                outgoing,
                ..channel
            })
        })
    }
}

/// A leader that has sent half of a snapshot to node 2.
struct Interrupted {
    dir: tempfile::TempDir,
    mesh: Arc<Mesh>,
    first: Store<Ledger>,
    may_break: Arc<Semaphore>,
}

impl Interrupted {
    /// Returns when node 2 has received everything that was sent. Node 2 is stopped then, with its
    /// files as a killed process leaves them.
    async fn new() -> Self {
        let (dir, mesh) = (tempfile::tempdir().unwrap(), Arc::new(Mesh::default()));
        let mut config = mesh.config(dir.path(), 1, StartMode::Form);
        config.keep_entries = 0;
        let may_break = Arc::new(Semaphore::new(0));
        config.transport = Arc::new(Halfway {
            inner: config.transport,
            snapshots: Arc::default(),
            may_break: may_break.clone(),
        });
        let first = mesh.start(config).await;
        fill(&first).await;
        only_snapshot(&first).await;
        let begin = StartMode::Join(first.cluster_id());
        let second = mesh.start(mesh.config(dir.path(), 2, begin)).await;
        mesh.add(&first, 2).await;
        wait_for("half of the snapshot", || async {
            let (sent, received) = (first.metrics(), second.metrics());
            let received = received.snapshot_bytes.received;
            received > TOTAL / 3 && received == sent.snapshot_bytes.sent
        })
        .await;
        copy_dir(&dir.path().join("2"), &dir.path().join("killed/2"));
        mesh.stop(2).await;
        Self {
            dir,
            mesh,
            first,
            may_break,
        }
    }

    /// Starts node 2 on the files of the killed process, and waits for the rest of the snapshot.
    async fn restart(&self) -> Store<Ledger> {
        let begin = StartMode::Join(self.first.cluster_id());
        let config = self.mesh.config(&self.dir.path().join("killed"), 2, begin);
        let second = self.mesh.start(config).await;
        self.may_break.add_permits(1);
        wait_for("the snapshot", || async {
            second.read_local(|l| l.entries.len()).unwrap() >= 8
        })
        .await;
        let state = self.first.read(Ledger::clone).await.unwrap();
        wait_for("the same state", || async {
            second.read_local(Ledger::clone).unwrap() == state
        })
        .await;
        second
    }

    fn partial(&self) -> std::path::PathBuf {
        self.dir.path().join("killed/2/snapshots/tmp-partial")
    }

    async fn end(self, second: Store<Ledger>) {
        let partial = self.partial();
        wait_for("no leftovers", || async { !partial.exists() }).await;
        self.first.shutdown().await;
        second.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_member_is_sent_the_rest_only() {
    let interrupted = Interrupted::new().await;
    let half = interrupted.first.metrics().snapshot_bytes.sent;
    let second = interrupted.restart().await;
    let (sent, received) = (
        interrupted.first.metrics().snapshot_bytes,
        second.metrics().snapshot_bytes,
    );
    println!("{half} bytes before the kill; in all {sent:?}, the restarted member {received:?}");
    // The last piece may have been on its way into the file.
    let slack = 2 * PIECE_BYTES as u64;
    assert!(sent.spared + slack >= half, "{sent:?}");
    assert_eq!(sent.spared, received.kept);
    assert_eq!(sent.sent, half + received.received);
    let whole = sent.spared + received.received;
    assert!(sent.sent <= whole + slack, "{sent:?}");
    interrupted.end(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_damaged_meanwhile_is_sent_again() {
    let interrupted = Interrupted::new().await;
    let state = interrupted.partial().join("copy/state");
    let files = std::fs::read_dir(&state).unwrap();
    let largest = files
        .map(|entry| entry.unwrap())
        .max_by_key(|entry| entry.metadata().unwrap().len())
        .unwrap();
    let mut bytes = std::fs::read(largest.path()).unwrap();
    let damaged = bytes.len() / 2;
    bytes[damaged] ^= 1;
    std::fs::write(largest.path(), &bytes).unwrap();
    let second = interrupted.restart().await;
    let kept = second.metrics().snapshot_bytes.kept;
    assert!(
        kept > 0 && kept < damaged as u64 + TOTAL / 4,
        "{kept} of {damaged}"
    );
    interrupted.end(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_snapshot_is_not_mixed_with_what_is_there() {
    let interrupted = Interrupted::new().await;
    put(&interrupted.first, "another", "value").await;
    interrupted.first.snapshot().await.unwrap();
    let second = interrupted.restart().await;
    assert_eq!(second.metrics().snapshot_bytes.kept, 0);
    interrupted.end(second).await;
}

pub(super) fn header(term: u64, index: u64, files: &[(&str, &[u8])]) -> SnapshotManifest {
    let files = files.iter().map(|(path, content)| SnapshotFile {
        path: (*path).to_owned(),
        bytes: content.len() as u64,
        crc: crc32fast::hash(content),
    });
    SnapshotManifest {
        name: format!("{term:020}-{index:020}"),
        files: files.collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_removes_what_it_has_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    put(&store, "key", "value").await;
    let applied = store.metrics().applied.unwrap();
    store.shutdown().await;
    let snapshots = dir.path().join("snapshots");
    for (term, stays) in [(1, false), (9, true)] {
        let at = SnapshotStore::open(Arc::new(RealDisk), &snapshots).unwrap();
        drop(
            at.begin_partial(header(term, applied, &[("META", b"x")]))
                .unwrap(),
        );
        let store = open(dir.path()).await;
        assert_eq!(snapshots.join("tmp-partial").exists(), stays, "{term}");
        store.shutdown().await;
    }
    // A snapshot without a readable header is removed as well.
    std::fs::write(snapshots.join("tmp-partial/HEADER"), "x").unwrap();
    open(dir.path()).await.shutdown().await;
    assert!(!snapshots.join("tmp-partial").exists());
}

#[test]
fn names_sort_as_entries_do() {
    let name = |term, index| {
        let leader = openraft::impls::leader_id_std::LeaderId::<u64, u64> { term, voted_for: 1 };
        let leader = openraft::vote::RaftLeaderId::to_committed(&leader);
        crate::snapshot::snapshot_name(Some(LogId::new(leader, index)))
    };
    assert!(name(1, 9) < name(1, 10) && name(1, 10) < name(2, 3) && name(9, 0) < name(10, 0));
    assert_eq!(name(1, 7), header(1, 7, &[]).name);
}
