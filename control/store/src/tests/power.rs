//! Recovery of the simulated disk after a kill of the process, and after a power failure.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use openraft::storage::IOFlushed;
use openraft::type_config::TypeConfigExt;
use tokio::sync::Notify;

use super::partial::header;
use super::wal::{OWNER, entry, ids};
use crate::disk::StoreDisk;
use crate::log_store::LogStore;
use crate::raft_types::TypeConfig;
use crate::sim::SimDisk;
use crate::snapshot::SnapshotStore;
use crate::snapshot::file::SnapshotManifest;
use crate::snapshot::partial::PartialSnapshot;
use crate::wal::Wal;

/// Number of seeds; the seed decides which unsynced writes a power failure keeps.
const FAILURES: u64 = 20;

fn open(disk: &SimDisk) -> Wal {
    let platform = disk.platform(|_| {});
    Wal::open(&platform, Path::new("/log"), OWNER, 8 << 10).unwrap()
}

/// Returns a disk with a log of five entries, written but not synced by a killed process.
async fn killed_before_the_sync(seed: u64) -> SimDisk {
    const AN_HOUR_MS: u64 = 3_600_000;
    let disk = SimDisk::new(seed);
    disk.set_sync_ms(Some(AN_HOUR_MS..AN_HOUR_MS + 1));
    let wal = open(&disk);
    let (tx, _rx) = TypeConfig::oneshot();
    let entries = (0..5).map(|i| entry(1, i, 700)).collect();
    wal.append(entries, IOFlushed::signal(tx)).await.unwrap();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let durable = wal.durable();
    let waited = durable.wait(0).now_or_never();
    assert!(waited.is_none(), "the state must wait for the sync");
    disk
}

#[tokio::test]
async fn what_a_start_finds_survives_the_power() {
    for seed in 0..FAILURES {
        let disk = killed_before_the_sync(seed).await;
        let wal = open(&disk);
        assert_eq!(ids(&wal).await.len(), 5, "a kill loses nothing");
        assert!(wal.durable().wait(4).now_or_never().is_some());
        drop(wal);
        disk.lose_power();
        assert_eq!(ids(&open(&disk)).await.len(), 5, "seed {seed}");
    }
}

/// As [`killed_before_the_sync`], but the process ended because the sync failed.
#[tokio::test]
async fn what_a_failed_sync_left_is_written_again() {
    for seed in 0..FAILURES {
        let disk = killed_before_the_sync(seed).await;
        disk.fail_next_sync();
        // The first start fails at the sync as well; the next start reads the same bytes.
        let platform = disk.platform(|_| {});
        drop(Wal::open(&platform, Path::new("/log"), OWNER, 8 << 10).unwrap_err());
        let wal = open(&disk);
        assert_eq!(ids(&wal).await.len(), 5);
        assert!(wal.durable().wait(4).now_or_never().is_some());
        drop(wal);
        disk.lose_power();
        assert_eq!(ids(&open(&disk)).await.len(), 5, "seed {seed}");
    }
}

/// Appends one entry. Returns `true` if it is durable, `false` if the disk has failed.
async fn append(wal: &Wal, index: u64, bytes: usize, failed: &Notify) -> bool {
    let (tx, rx) = TypeConfig::oneshot();
    let entries = vec![entry(1, index, bytes)];
    wal.append(entries, IOFlushed::signal(tx)).await.unwrap();
    tokio::select! {
        biased;
        synced = rx => matches!(synced, Ok(Ok(()))),
        () = failed.notified() => false,
    }
}

#[tokio::test]
async fn a_kill_at_any_moment_and_then_the_power_lose_nothing() {
    for operations in 0..80 {
        let disk = SimDisk::new(operations);
        disk.set_sync_ms(Some(0..1));
        disk.lose_power_after(operations);
        let failed = Arc::new(Notify::new());
        let told = failed.clone();
        let platform = disk.platform(move |_| told.notify_one());
        let mut acknowledged = 0;
        if let Ok(wal) = Wal::open(&platform, Path::new("/log"), OWNER, 8 << 10) {
            while acknowledged < 12 && append(&wal, acknowledged, 3000, &failed).await {
                acknowledged += 1;
            }
        }
        // A kill keeps all writes, synced or not, and another process continues.
        disk.mend();
        let wal = open(&disk);
        let next = ids(&wal).await.len() as u64;
        assert!(
            next >= acknowledged,
            "{operations}: {next} of {acknowledged}"
        );
        assert!(append(&wal, next, 10, &failed).await);
        drop(wal);
        disk.lose_power();
        let left = ids(&open(&disk)).await.len() as u64;
        assert_eq!(left, next + 1, "{operations}");
    }
}

#[tokio::test]
async fn what_was_not_synced_is_cut_and_never_refused() {
    for seed in 0..FAILURES {
        let disk = killed_before_the_sync(seed).await;
        disk.lose_power();
        let left = ids(&open(&disk)).await.len();
        assert!(left <= 5);
        disk.lose_power();
        assert_eq!(ids(&open(&disk)).await.len(), left, "seed {seed}");
    }
}

/// Receives the missing bytes of each file.
fn receive(partial: &mut PartialSnapshot, contents: &[&[u8]], piece: usize) -> Result<(), String> {
    for (number, content) in contents.iter().enumerate() {
        let have = usize::try_from(partial.received_bytes()[number]).unwrap();
        let mut offset = have;
        for piece in content[have..].chunks(piece) {
            let appended = partial.append(number, offset as u64, piece);
            appended.map_err(|flaw| format!("{flaw:?}"))?;
            offset += piece.len();
        }
    }
    partial.verify().map_err(|flaw| format!("{flaw:?}"))
}

/// After a power failure between any two operations the transfer resumes, with correct files.
#[test]
fn a_power_failure_at_any_moment_costs_no_more_than_what_was_not_synced() {
    let contents: [&[u8]; 4] = [&[1; 700], &[2; 3000], &[], &[3; 5000]];
    let names = ["META", "state/a", "state/b", "state/c"];
    let files: Vec<_> = names.into_iter().zip(contents).collect();
    let header = header(1, 1, &files);
    let mut kept = 0;
    for seed in 0..300 {
        let sim = SimDisk::new(seed);
        let disk: Arc<dyn StoreDisk> = Arc::new(sim.clone());
        let open = || SnapshotStore::open(disk.clone(), Path::new("/snapshots")).unwrap();
        sim.lose_power_after(seed / 3);
        for _ in 0..2 {
            if let Ok(snapshots) = SnapshotStore::open(disk.clone(), Path::new("/snapshots"))
                && let Ok(mut partial) = find(&snapshots, &header)
            {
                drop(receive(&mut partial, &contents, 300));
            }
            sim.lose_power();
            sim.lose_power_after(seed / 2);
        }
        sim.mend();
        let mut partial = find(&open(), &header).unwrap();
        kept += partial.received_bytes().iter().sum::<u64>();
        receive(&mut partial, &contents, 300).unwrap();
        for (name, content) in &files {
            let path = open().received_dir().0.join(name);
            assert_eq!(disk.read(&path).unwrap(), *content, "seed {seed}, {name}");
        }
    }
    assert!(kept > 300 * 300, "{kept} bytes were kept");
}

fn find(snapshots: &SnapshotStore, header: &SnapshotManifest) -> std::io::Result<PartialSnapshot> {
    match snapshots.resume_partial(header) {
        Some(partial) => Ok(partial),
        None => snapshots.begin_partial(header.clone()),
    }
}
