//! Records of calls that changed nothing, gathered: one command for all that wait.
//!
//! The record of a call that changes something goes with its change, see
//! [`Permit::for_call`]; what comes here is the rest: reads, refusals, failures. A full queue holds
//! calls up rather than losing records; refused calls of one caller are counted, see `refusals`.

use std::time::Duration;

use control_authz::{AuditedCall, Permit, SystemActor};
use control_state::{AppendAudit, AuditEntry, CONFIRMED_LEVEL, Command, feature_level};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::call_end::CallEnd;
use crate::refusals::Refusals;
use crate::store::Store;

/// Calls that may wait for the writer.
const QUEUE_MAX: usize = 1024;
/// Calls in one command.
const BATCH_MAX: usize = 128;
/// How long refused calls are counted before their number is recorded.
const COUNT_FOR: Duration = Duration::from_secs(60);

/// Where ends of calls go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditTrail {
    queue: mpsc::Sender<CallEnd>,
}

/// Writes them into the state; see [`AuditWriter::run`].
#[derive(Debug)]
pub struct AuditWriter {
    queue: mpsc::Receiver<CallEnd>,
    store: Store,
    refusals: Refusals,
}

impl AuditTrail {
    /// A trail and the writer that has to run for it.
    pub fn new(store: Store) -> (Self, AuditWriter) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let writer = AuditWriter {
            queue,
            store,
            refusals: Refusals::default(),
        };
        (Self { queue: sender }, writer)
    }

    /// Puts the end of a call; waits while the queue is full.
    pub async fn put(&self, end: CallEnd) {
        if !end.is_recorded() && self.queue.send(end).await.is_err() {
            tracing::error!("an audit record came after the writer ended");
        }
    }

    /// Ends of calls that wait for the writer.
    pub fn waiting(&self) -> usize {
        QUEUE_MAX - self.queue.capacity()
    }

    /// The same where one cannot wait.
    pub fn try_put(&self, end: CallEnd) {
        if end.is_recorded() {
            return;
        }
        if let Err(refused) = self.queue.try_send(end) {
            let AuditedCall { method, user, .. } = &*refused.into_inner().call;
            tracing::error!(method, user, "an audit record was lost: its queue is full");
        }
    }
}

impl AuditWriter {
    /// Runs until stopped, then writes what still waits.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        let mut minutes = interval(COUNT_FOR);
        minutes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let open = tokio::select! {
                () = stop.cancelled() => false,
                count = self.queue.recv_many(&mut batch, BATCH_MAX) => count > 0,
                _ = minutes.tick() => {
                    self.write_counted().await;
                    continue;
                }
            };
            if !open {
                self.queue.close();
                while self.queue.recv_many(&mut batch, BATCH_MAX).await > 0 {}
            }
            self.write(std::mem::take(&mut batch)).await;
            if !open {
                self.write_counted().await;
                return;
            }
        }
    }

    async fn write(&mut self, batch: Vec<CallEnd>) {
        let known = self.store.read_local(|tables| {
            let is_counted = feature_level(tables) >= CONFIRMED_LEVEL;
            (control_state::audit_is_chained(tables), is_counted)
        });
        let (is_chained, is_counted) = known.unwrap_or_default();
        let mut ends = Vec::new();
        for end in batch {
            let end = match is_counted {
                true => self.refusals.count(end),
                false => Some(end),
            };
            ends.extend(end);
        }
        for chunk in ends.chunks(BATCH_MAX) {
            let ends = chunk.iter().cloned();
            let entries = ends.flat_map(|end| end.entries(is_chained)).collect();
            self.append(entries).await;
        }
    }

    /// Records how many more calls were refused in the last minute.
    async fn write_counted(&mut self) {
        for chunk in self.refusals.take().chunks(BATCH_MAX) {
            self.append(chunk.to_vec()).await;
        }
    }

    async fn append(&self, entries: Vec<AuditEntry>) {
        let permit = Permit::system(SystemActor::Audit);
        let op = AppendAudit { entries };
        let command = Command::new(self.store.now(), "audit", op.clone());
        if let Err(error) = self.store.propose(&permit, &command).await {
            // The log is the trail of last resort.
            for entry in &op.entries {
                tracing::error!(error = %error, entry = ?entry, "an audit record was not stored");
            }
        }
    }
}
