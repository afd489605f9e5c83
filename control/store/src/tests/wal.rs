//! Tests of the log without Raft.

use openraft::EntryPayload;
use openraft::storage::IOFlushed;
use openraft::type_config::TypeConfigExt;
use openraft::vote::RaftLeaderId;
use uuid::Uuid;

use super::*;
use crate::disk::RealDisk;
use crate::log_store::LogStore;
use crate::raft_types::{CommandBatch, Entry, LogId, TypeConfig, Vote};
use crate::wal::{LogOwner, Wal, segment};
use crate::{NodePlatform, WalError};

pub(super) const OWNER: LogOwner = LogOwner {
    cluster: Uuid::from_u128(7),
    node: 1,
};

fn log_id(term: u64, index: u64) -> LogId {
    let leader = openraft::impls::leader_id_std::LeaderId {
        term,
        voted_for: 1_u64,
    };
    LogId::new(leader.to_committed(), index)
}

pub(super) fn entry(term: u64, index: u64, bytes: usize) -> Entry {
    let batch = CommandBatch(vec![vec![b'x'; bytes].into()]);
    Entry {
        log_id: log_id(term, index),
        payload: EntryPayload::Normal(batch),
    }
}

fn open_wal(dir: &Path) -> Wal {
    Wal::open(&NodePlatform::default(), dir, OWNER, 8 << 10).unwrap()
}

async fn append(wal: &Wal, entries: Vec<Entry>) {
    let (tx, rx) = TypeConfig::oneshot();
    wal.append(entries, IOFlushed::signal(tx)).await.unwrap();
    rx.await.unwrap().unwrap();
}

pub(super) async fn ids(wal: &Wal) -> Vec<LogId> {
    wal.read(0..u64::MAX)
        .await
        .unwrap()
        .iter()
        .map(|e| e.log_id)
        .collect()
}

#[tokio::test]
async fn entries_are_readable_at_once_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    let (tx, rx) = TypeConfig::oneshot();
    wal.append(
        (0..5).map(|i| entry(1, i, 50)).collect(),
        IOFlushed::signal(tx),
    )
    .await
    .unwrap();
    assert_eq!(ids(&wal).await.len(), 5, "before the sync");
    rx.await.unwrap().unwrap();
    wal.save_vote(Vote::new_committed(3, 1)).await.unwrap();
    wal.save_committed(Some(log_id(1, 3))).await.unwrap();
    drop(wal);
    let wal = open_wal(dir.path());
    assert_eq!(
        ids(&wal).await,
        (0..5).map(|i| log_id(1, i)).collect::<Vec<_>>()
    );
    assert_eq!(wal.read(2..4).await.unwrap()[1], entry(1, 3, 50));
    assert_eq!(wal.vote(), Some(Vote::new_committed(3, 1)));
    assert_eq!(wal.committed(), Some(log_id(1, 3)));
    assert_eq!(wal.purged(), None);
}

#[tokio::test]
async fn a_truncated_tail_never_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let image = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    append(&wal, (0..10).map(|i| entry(1, i, 50)).collect()).await;
    wal.truncate_after(Some(log_id(1, 4))).await.unwrap();
    append(&wal, (5..8).map(|i| entry(2, i, 50)).collect()).await;
    copy_dir(dir.path(), image.path());
    let crashed = open_wal(image.path());
    let expected: Vec<_> = (0..5)
        .map(|i| log_id(1, i))
        .chain((5..8).map(|i| log_id(2, i)))
        .collect();
    assert_eq!(ids(&crashed).await, expected);
    assert_eq!(crashed.last(), Some(log_id(2, 7)));
}

#[tokio::test]
async fn holes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    append(&wal, vec![entry(1, 0, 10)]).await;
    let (tx, _rx) = TypeConfig::oneshot();
    assert!(
        wal.append(vec![entry(1, 2, 10)], IOFlushed::signal(tx))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn purging_removes_whole_segments_and_keeps_the_vote() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    wal.save_vote(Vote::new_committed(1, 1)).await.unwrap();
    for i in 0..100 {
        append(&wal, vec![entry(1, i, 500)]).await;
    }
    let before = segment::list(&RealDisk, dir.path()).unwrap();
    assert!(before.len() > 5, "{before:?}");
    wal.purge(log_id(1, 80)).await.unwrap();
    let after = segment::list(&RealDisk, dir.path()).unwrap();
    assert!(
        after.len() < 4 && after.first() > before.first(),
        "{after:?}"
    );
    assert_eq!(wal.segments(), after.len());
    drop(wal);

    let wal = open_wal(dir.path());
    assert_eq!(wal.purged(), Some(log_id(1, 80)));
    assert_eq!(wal.vote(), Some(Vote::new_committed(1, 1)));
    assert_eq!(
        ids(&wal).await,
        (81..100).map(|i| log_id(1, i)).collect::<Vec<_>>()
    );
    // As after the installation of a leader's snapshot: the log begins behind its last entry.
    wal.purge(log_id(2, 500)).await.unwrap();
    append(&wal, vec![entry(2, 501, 10)]).await;
    drop(wal);
    let wal = open_wal(dir.path());
    assert_eq!(ids(&wal).await, [log_id(2, 501)]);
}

#[tokio::test]
async fn entries_that_left_memory_are_read_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    wal.limit_cache(2000);
    for i in 0..60 {
        append(&wal, vec![entry(1, i, 500)]).await;
    }
    let cached = wal.cached_bytes();
    assert!(cached <= 2000, "{cached}");
    let read = wal.read(0..60).await.unwrap();
    assert_eq!(read, (0..60).map(|i| entry(1, i, 500)).collect::<Vec<_>>());
    wal.truncate_after(Some(log_id(1, 10))).await.unwrap();
    append(&wal, vec![entry(2, 11, 500)]).await;
    assert_eq!(ids(&wal).await.last(), Some(&log_id(2, 11)));
}

#[tokio::test]
async fn an_entry_that_rots_on_disk_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    wal.limit_cache(1000);
    for i in 0..20 {
        append(&wal, vec![entry(1, i, 500)]).await;
    }
    let first = segment::path(dir.path(), 1);
    let mut bytes = std::fs::read(&first).unwrap();
    let text = bytes.windows(8).position(|w| w == b"xxxxxxxx").unwrap();
    bytes[text] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    let error = wal.read(0..1).await.unwrap_err().to_string();
    assert!(error.contains(&first.display().to_string()), "{error}");
    assert!(error.contains("checksum"), "{error}");
    assert!(error.contains("restore this data directory"), "{error}");
    assert_eq!(wal.read(1..3).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_missing_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    for i in 0..60 {
        append(&wal, vec![entry(1, i, 500)]).await;
    }
    drop(wal);
    let image = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), image.path());
    std::fs::remove_file(segment::path(image.path(), 2)).unwrap();
    let refused = Wal::open(&NodePlatform::default(), image.path(), OWNER, 8 << 10).unwrap_err();
    assert!(refused.to_string().contains("is missing"), "{refused}");
    // The first segment as well: its entries were never purged.
    std::fs::remove_file(segment::path(dir.path(), 1)).unwrap();
    let refused = Wal::open(&NodePlatform::default(), dir.path(), OWNER, 8 << 10).unwrap_err();
    assert!(matches!(refused, WalError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().contains("are missing"), "{refused}");
}

#[tokio::test]
async fn a_closed_log_answers_errors() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open_wal(dir.path());
    wal.close();
    assert!(wal.save_vote(Vote::new(1, 1)).await.is_err());
}
