//! `kill -9` of a real process that writes: no acknowledged write is lost, and no write appears
//! that was not proposed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::task::JoinSet;

use super::*;

const DIR_VARIABLE: &str = "CONTROL_STORE_CRASH_DIR";
const ROUND_VARIABLE: &str = "CONTROL_STORE_CRASH_ROUND";
const TASKS: u64 = 16;

/// Not a test by itself: the code of the killed process. Each task writes one key after the other
/// and prints each acknowledgement.
#[test]
#[ignore = "run by acknowledged_writes_survive_kill_9 in a process of its own"]
fn writer_process() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else {
        return;
    };
    let round = std::env::var(ROUND_VARIABLE).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async move {
        let config = StoreConfig {
            // The kill hits snapshots, purges and new segments too.
            snapshot_every_entries: 200,
            keep_entries: 20,
            ..config(Path::new(&dir))
        };
        let store: Store<Ledger> = Store::open(config).await.unwrap();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (store, round) = (store.clone(), round.clone());
            tasks.spawn(async move {
                for n in 0_u64.. {
                    put(&store, &format!("{round}/{task}/{n:08}"), &"v".repeat(200)).await;
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {task} {n}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
        tasks.join_next().await;
    });
}

fn spawn_writer(dir: &Path, round: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "tests::crash::writer_process",
            "--ignored",
            "--nocapture",
        ])
        .env(DIR_VARIABLE, dir)
        .env(ROUND_VARIABLE, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets the writer acknowledge `acks` writes, kills it, and returns the last acknowledged number
/// of each task. Lines already in the pipe count: they were acknowledged, too.
fn run_and_kill(dir: &Path, round: usize, acks: usize) -> BTreeMap<u64, u64> {
    let mut child = spawn_writer(dir, round);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = BTreeMap::new();
    let mut seen = 0;
    for line in lines {
        // The last line may be cut by the kill.
        let Ok(line) = line else { break };
        let mut words = line.split(' ');
        if words.next() != Some("ack") {
            continue;
        }
        let numbers: Vec<u64> = words.filter_map(|w| w.parse().ok()).collect();
        let [task, n] = numbers[..] else { continue };
        acknowledged.insert(task, n);
        seen += 1;
        if seen == acks {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(
        seen >= acks,
        "the writer stopped by itself after {seen} writes"
    );
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = Vec::new();
    for (round, acks) in [40, 700, 3000].into_iter().enumerate() {
        history.push(run_and_kill(dir.path(), round, acks));
        let store = open(dir.path()).await;
        let ledger = store.read(Ledger::clone).await.unwrap();
        let metrics = store.metrics();
        store.shutdown().await;
        check(&ledger, &history);
        println!(
            "round {round}: {} keys, log {:?}, snapshot {:?}, purged {:?}",
            ledger.entries.len(),
            metrics.last_log,
            metrics.snapshot,
            metrics.purged
        );
        assert!(round < 2 || metrics.snapshot.is_some());
    }
}

/// Checks each task: all numbers up to the last acknowledged one are there without a gap, and at
/// most two more.
fn check(ledger: &Ledger, history: &[BTreeMap<u64, u64>]) {
    let mut found: BTreeMap<(usize, u64), Vec<u64>> = BTreeMap::new();
    for (key, value) in &ledger.entries {
        assert_eq!(value.len(), 200, "{key}");
        let parts: Vec<&str> = key.split('/').collect();
        let owner = (parts[0].parse().unwrap(), parts[1].parse().unwrap());
        found
            .entry(owner)
            .or_default()
            .push(parts[2].parse().unwrap());
    }
    for (round, acknowledged) in history.iter().enumerate() {
        for (task, last) in acknowledged {
            let numbers = found.get(&(round, *task)).unwrap();
            let top = *numbers.last().unwrap();
            assert_eq!(
                numbers,
                &(0..=top).collect::<Vec<_>>(),
                "round {round}, task {task}"
            );
            assert!(
                top >= *last,
                "round {round}, task {task}: write {last} is lost"
            );
            // A task has one write on its way, and its acknowledgement may die in the pipe.
            assert!(
                top <= last + 2,
                "round {round}, task {task}: {top} was never proposed"
            );
        }
    }
}

/// Not a test by itself: a store whose log directory disappears.
#[test]
#[ignore = "run by a_log_that_cannot_be_written_ends_the_process"]
fn failing_disk_process() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async move {
        let dir = Path::new(&dir);
        let store: Store<Ledger> = Store::open(StoreConfig {
            segment_bytes: 16 << 10,
            ..config(dir)
        })
        .await
        .unwrap();
        put(&store, "before", "value").await;
        std::fs::remove_dir_all(dir.join("log")).unwrap();
        // The open segment takes some of these writes; then a new segment is needed.
        for n in 0..1000 {
            put(&store, &format!("after-{n}"), &"v".repeat(200)).await;
        }
    });
}

#[test]
fn a_log_that_cannot_be_written_ends_the_process() {
    const SIGABRT: i32 = 6;
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::crash::failing_disk_process", "--ignored"])
        .env(DIR_VARIABLE, dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(SIGABRT), "{status:?}");
}
