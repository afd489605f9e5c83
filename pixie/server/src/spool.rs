//! Boots that control has not heard of yet, kept with their times, on disk, bounded.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::Rng;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::control::{ControlError, Seen};
use crate::leasefile;
use crate::state::Shared;

/// Events kept at most; the oldest goes first.
const EVENTS_MAX: usize = 4096;
const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The queue of unsent events.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    events: Mutex<VecDeque<Seen>>,
    added: Notify,
}

impl Spool {
    /// Opens the spool with what an earlier run could not send. A broken file is left out: these
    /// are events of the past, and booting goes on.
    pub(crate) fn open(path: PathBuf) -> Self {
        let events = leasefile::read_json(&path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "spool not read");
            None
        });
        Self {
            path,
            events: Mutex::new(events.unwrap_or_default()),
            added: Notify::new(),
        }
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<Seen>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        self.events().len()
    }

    /// Keeps an event for later.
    pub(crate) fn add(&self, seen: Seen) {
        {
            let mut events = self.events();
            if events.len() >= EVENTS_MAX {
                events.pop_front();
                tracing::warn!(kept = EVENTS_MAX, "spool full, the oldest event is lost");
            }
            events.push_back(seen);
        }
        self.added.notify_one();
    }

    fn first(&self) -> Option<Seen> {
        self.events().front().copied()
    }

    fn drop_first(&self, sent: Seen) {
        let mut events = self.events();
        if events.front() == Some(&sent) {
            events.pop_front();
        }
    }

    async fn write(&self) {
        let events = self.events().clone();
        let path = self.path.clone();
        let written =
            tokio::task::spawn_blocking(move || leasefile::write_json(&path, &events)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "spool not written"),
            Err(error) => tracing::warn!(%error, "spool not written"),
        }
    }
}

/// Sends what waits, in order, until stopped.
pub(crate) async fn run_spool(shared: Arc<Shared>, stop: CancellationToken) {
    let spool = &shared.spool;
    let mut backoff = BACKOFF_MIN;
    loop {
        let Some(seen) = spool.first() else {
            tokio::select! {
                () = stop.cancelled() => return,
                () = spool.added.notified() => { spool.write().await; continue }
            }
        };
        let sent = tokio::select! {
            () = stop.cancelled() => return,
            sent = shared.control.seen(seen) => sent,
        };
        match sent {
            Ok(_) => {
                shared.control_answered();
                backoff = BACKOFF_MIN;
            }
            Err(ControlError::Refused(reason)) => {
                tracing::warn!(machine = %seen.machine, mac = %seen.mac, reason, "event refused");
            }
            Err(ControlError::Away(error)) => {
                tracing::debug!(error, waiting = spool.len(), "event not sent");
                let jitter = rand::rng().random_range(0.5..1.0);
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(backoff.mul_f64(jitter)) => {}
                }
                backoff = (backoff * 2).min(BACKOFF_MAX);
                continue;
            }
        }
        spool.drop_first(seen);
        spool.write().await;
    }
}
