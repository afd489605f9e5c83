//! A spool of events for control on disk, which survives a restart of the agent.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use base_runtime::Backoff;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::spooled::{Delivery, Spooled};
use crate::state_dir::StateDir;

/// Pauses between attempts to deliver an event.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// Deliveries until the file is written again. After a crash at most as many events are delivered a
/// second time; control recognises them by subject and time.
const TOLD_PER_WRITE: usize = 64;

/// A spool of at most `max` events, oldest first. A full spool drops the oldest event with a
/// younger one of the same key, or else the oldest, and counts it.
#[derive(Debug)]
pub struct DiskSpool<E> {
    dir: StateDir,
    file: String,
    max: usize,
    kept: Mutex<SpoolContent<E>>,
    /// One writer at a time, so that an older list never replaces a newer one.
    writing: tokio::sync::Mutex<()>,
    added: Notify,
}

/// The content of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SpoolContent<E> {
    /// Events dropped for want of room since the file was first made.
    dropped: u64,
    events: VecDeque<E>,
}

impl<E: Spooled> DiskSpool<E> {
    /// Opens the spool in this file of a state directory, with the events that an earlier run did
    /// not deliver. A damaged file counts as empty: its events are of the past, and must not stop
    /// the agent's present work.
    pub fn open(dir: StateDir, file: &str, max: usize) -> Self {
        let kept = match dir.read(file) {
            Ok(Some(bytes)) => decode_spool(&bytes).unwrap_or_else(|| {
                warn!(file, "spool is damaged; its events are lost");
                SpoolContent::default()
            }),
            Ok(None) => SpoolContent::default(),
            Err(e) => {
                warn!(file, error = %e, "spool not readable; its events are lost");
                SpoolContent::default()
            }
        };
        Self {
            dir,
            file: file.to_owned(),
            max: max.max(1),
            kept: Mutex::new(kept),
            writing: tokio::sync::Mutex::default(),
            added: Notify::new(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, SpoolContent<E>> {
        self.kept.lock()
    }

    /// Adds an event without waiting. [`DiskSpool::run`] writes it to disk and delivers it.
    pub fn add(&self, event: E) {
        {
            let mut kept = self.kept();
            kept.events.push_back(event);
            while kept.events.len() > self.max {
                make_room(&mut kept);
            }
        }
        self.added.notify_one();
    }

    /// Number of waiting events.
    pub fn len(&self) -> usize {
        self.kept().events.len()
    }

    /// `true` if no event waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of events dropped for want of room since the file was first made.
    pub fn dropped(&self) -> u64 {
        self.kept().dropped
    }

    /// Delivers the events in order, each until control has answered, until `stop`. Added events
    /// are written to disk at once, also while control does not answer.
    pub async fn run<F, FF>(&self, mut tell: F, stop: CancellationToken)
    where
        F: FnMut(E) -> FF,
        FF: Future<Output = Delivery>,
    {
        let mut failures = 0_u32;
        let mut unwritten = 0;
        while !stop.is_cancelled() {
            // A copy stays in the spool during the delivery: a crash or a lost answer must deliver
            // the event again, not lose it.
            let first = self.kept().events.front().cloned();
            let Some(event) = first else {
                self.until(&stop, std::future::pending::<()>()).await;
                continue;
            };
            match self.until(&stop, tell(event.clone())).await {
                None => break,
                Some(Delivery::Done) => {
                    self.remove_delivered(&event);
                    failures = 0;
                    unwritten += 1;
                    // Not after each delivery: the sync of the file would take longer than the
                    // call, and a backlog of thousands of events would drain slowly.
                    if unwritten >= TOLD_PER_WRITE || self.is_empty() {
                        self.write().await;
                        unwritten = 0;
                    }
                }
                Some(Delivery::Away) => {
                    debug!(file = %self.file, waiting = self.len(), "events wait for control");
                    self.until(&stop, sleep(BACKOFF.pause(failures))).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
        // The events delivered since the last write would be delivered again after the restart.
        if unwritten > 0 {
            self.write().await;
        }
    }

    /// Waits for `work`, and meanwhile writes added events to disk. `None` if `stop` came first, or
    /// if the spool was empty and an event was added.
    async fn until<T>(&self, stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let was_empty = self.is_empty();
        loop {
            tokio::select! {
                () = stop.cancelled() => return None,
                done = &mut work => return Some(done),
                () = self.added.notified() => {
                    self.write().await;
                    if was_empty {
                        return None;
                    }
                }
            }
        }
    }

    /// Removes a delivered event, unless it was dropped for want of room during the delivery.
    fn remove_delivered(&self, event: &E) {
        let mut kept = self.kept();
        if kept.events.front() == Some(event) {
            kept.events.pop_front();
        }
    }

    async fn write(&self) {
        // The copy is taken under the lock, so that the last writer has the newest list.
        let _writing = self.writing.lock().await;
        let kept = self.kept().clone();
        let (dir, file) = (self.dir.clone(), self.file.clone());
        let write = move || {
            let bytes = serde_json::to_vec(&kept).map_err(|e| e.to_string())?;
            dir.write(&file, &bytes).map_err(|e| e.to_string())
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(file = %self.file, error, "spool not written"),
            Err(error) => warn!(file = %self.file, %error, "spool not written"),
        }
    }
}

impl<E> Default for SpoolContent<E> {
    fn default() -> Self {
        Self {
            dropped: 0,
            events: VecDeque::new(),
        }
    }
}

fn make_room<E: Spooled>(kept: &mut SpoolContent<E>) {
    // From the youngest on: an event whose key was met before has a younger one. The last of them is
    // the oldest; without any, index 0 is.
    let mut younger = BTreeSet::new();
    let mut oldest = 0;
    for (at, event) in kept.events.iter().enumerate().rev() {
        if !younger.insert(event.key()) {
            oldest = at;
        }
    }
    kept.events.remove(oldest);
    kept.dropped += 1;
    if kept.dropped.is_power_of_two() {
        warn!(
            dropped = kept.dropped,
            "spool full: dropping the oldest events"
        );
    }
}

/// Decodes a spool's file. The first version of the format was a bare list of events.
fn decode_spool<E: Spooled>(bytes: &[u8]) -> Option<SpoolContent<E>> {
    let list = |bytes| {
        let events = serde_json::from_slice(bytes).ok()?;
        Some(SpoolContent { dropped: 0, events })
    };
    serde_json::from_slice(bytes).ok().or_else(|| list(bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::watch;
    use tokio::task::JoinSet;

    use super::*;

    /// An event: subject and time.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Seen(u32, u32);

    impl Spooled for Seen {
        type Key = u32;
        fn key(&self) -> u32 {
            self.0
        }
    }

    fn open(dir: &tempfile::TempDir, max: usize) -> DiskSpool<Seen> {
        DiskSpool::open(
            StateDir::open(&dir.path().join("state")).unwrap(),
            "seen.json",
            max,
        )
    }

    fn all(spool: &DiskSpool<Seen>) -> Vec<Seen> {
        spool.kept().events.iter().cloned().collect()
    }

    #[test]
    fn what_says_least_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let spool = open(&dir, 3);
        for event in [Seen(1, 1), Seen(2, 2), Seen(1, 3), Seen(3, 4)] {
            spool.add(event);
        }
        assert_eq!(all(&spool), [Seen(2, 2), Seen(1, 3), Seen(3, 4)]);
        spool.add(Seen(4, 5));
        assert_eq!(all(&spool), [Seen(1, 3), Seen(3, 4), Seen(4, 5)]);
        assert_eq!(spool.dropped(), 2);
    }

    #[tokio::test]
    async fn what_waits_survives_and_is_told_in_order_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/seen.json");
        let spool = Arc::new(open(&dir, 10));
        let stop = CancellationToken::new();
        let mut work = JoinSet::new();
        let (spool_of_work, stopped) = (spool.clone(), stop.clone());
        work.spawn(async move {
            let away = |_| std::future::ready(Delivery::Away);
            spool_of_work.run(away, stopped).await;
        });
        for n in 1..=3 {
            spool.add(Seen(n, n));
            // On disk although nobody answers.
            let written = || {
                std::fs::read(&file).is_ok_and(|b| b.ends_with(format!("[{n},{n}]]}}").as_bytes()))
            };
            while !written() {
                tokio::task::yield_now().await;
            }
        }
        stop.cancel();
        work.join_next().await.unwrap().unwrap();

        let spool = open(&dir, 10);
        let (told, mut heard) = watch::channel(Vec::new());
        let stop = CancellationToken::new();
        let tell = |event: Seen| {
            told.send_modify(|all| all.push(event));
            std::future::ready(Delivery::Done)
        };
        tokio::select! {
            () = spool.run(tell, stop.clone()) => {}
            _ = heard.wait_for(|all| all.len() == 3) => {}
        }
        assert_eq!(*told.borrow(), [Seen(1, 1), Seen(2, 2), Seen(3, 3)]);
        stop.cancel();
        spool.run(tell, stop).await;
        assert_eq!(told.borrow().len(), 3);
    }

    #[test]
    fn the_first_form_is_read_and_a_broken_file_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/seen.json");
        assert!(open(&dir, 10).is_empty());
        std::fs::write(&file, b"[[7,1],[8,2]]").unwrap();
        assert_eq!(all(&open(&dir, 10)), [Seen(7, 1), Seen(8, 2)]);
        std::fs::write(&file, b"{").unwrap();
        assert!(open(&dir, 10).is_empty());
    }
}
