//! Damaged data directories: the end is cut where nothing can be acknowledged, other damage is
//! refused with a remedy.

use std::path::PathBuf;

use super::*;
use crate::wal::frame::{self, FrameKind};
use crate::wal::scan::scan;
use crate::wal::segment;
use crate::{OpenError, WalError};

fn newest_segment(dir: &Path) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files.pop().unwrap()
}

/// Makes a closed store with ten writes.
async fn written(dir: &Path) -> Ledger {
    let store = open(dir).await;
    for n in 0..10 {
        put(&store, &format!("key-{n}"), "value").await;
    }
    let ledger = store.read(Ledger::clone).await.unwrap();
    store.shutdown().await;
    ledger
}

fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).unwrap() + 1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let before = written(dir.path()).await;
    let file = newest_segment(dir.path());
    let mut bytes = std::fs::read(&file).unwrap();
    let end = used(&bytes).next_multiple_of(8);
    // The first half of some record, as an interrupted write leaves it.
    let start = bytes[..end].windows(4).position(|w| w == b"LWMM").unwrap();
    bytes.copy_within(start..start + 40, end);
    std::fs::write(&file, &bytes).unwrap();

    let store = open(dir.path()).await;
    assert_eq!(store.read(Ledger::clone).await.unwrap(), before);
    put(&store, "more", "value").await;
    store.shutdown().await;
    let store = open(dir.path()).await;
    assert_eq!(store.read(|l| l.entries.len()).await.unwrap(), 11);
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_is_refused_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let file = newest_segment(dir.path());
    let clean = std::fs::read(&file).unwrap();
    let mut bytes = clean.clone();
    bytes[used(&clean) / 2] ^= 0x10;
    std::fs::write(&file, &bytes).unwrap();

    let refused = Store::<Ledger>::open(config(dir.path())).await.unwrap_err();
    assert!(
        matches!(refused, OpenError::Log(WalError::Corrupt { .. })),
        "{refused:?}"
    );
    let message = refused.to_string();
    assert!(message.contains(&file.display().to_string()), "{message}");
    assert!(
        message.contains("restore this data directory from a backup"),
        "{message}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing was changed");

    std::fs::write(&file, &clean).unwrap();
    open(dir.path()).await.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_a_newer_format_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let before = written(dir.path()).await;
    let file = newest_segment(dir.path());
    let clean = std::fs::read(&file).unwrap();
    let salt = segment::read_preamble(&clean).unwrap();
    let end = scan(&clean, segment::PREAMBLE_BYTES, salt).end;
    let mut newer = Vec::new();
    let window = end.try_into().unwrap();
    frame::write(&mut newer, salt, FrameKind::Entry, 1, window, b"newer");
    frame::set_kind(&mut newer, salt, 9);
    let mut bytes = clean.clone();
    bytes[end..end + newer.len()].copy_from_slice(&newer);
    std::fs::write(&file, &bytes).unwrap();

    let refused = Store::<Ledger>::open(config(dir.path())).await.unwrap_err();
    let message = refused.to_string();
    assert!(message.contains("record of unknown kind 9"), "{message}");
    assert!(message.contains(&file.display().to_string()), "{message}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing was changed");

    std::fs::write(&file, &clean).unwrap();
    let store = open(dir.path()).await;
    assert_eq!(store.read(Ledger::clone).await.unwrap(), before);
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_lost_entries_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let older = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    put(&store, "early", "value").await;
    copy_dir(&dir.path().join("log"), older.path());
    put(&store, "late", "value").await;
    store.shutdown().await;
    std::fs::remove_dir_all(dir.path().join("log")).unwrap();
    copy_dir(older.path(), &dir.path().join("log"));

    let refused = Store::<Ledger>::open(config(dir.path())).await.unwrap_err();
    assert!(
        matches!(refused, OpenError::LogBehindState { .. }),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_log_is_refused() {
    let ours = tempfile::tempdir().unwrap();
    let theirs = tempfile::tempdir().unwrap();
    written(ours.path()).await;
    written(theirs.path()).await;
    std::fs::remove_dir_all(ours.path().join("log")).unwrap();
    copy_dir(&theirs.path().join("log"), &ours.path().join("log"));
    let refused = Store::<Ledger>::open(config(ours.path()))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, OpenError::Log(WalError::Foreign { .. })),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_state_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let before = written(dir.path()).await;
    std::fs::remove_dir_all(dir.path().join("state")).unwrap();
    let store = open(dir.path()).await;
    assert_eq!(store.read(Ledger::clone).await.unwrap(), before);
    store.shutdown().await;
}
