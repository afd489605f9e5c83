//! The audit trail of calls that changed nothing: reads, refusals and failures, written in batches.
//!
//! The record of a call that changes something is a part of its command, see [`Permit::for_call`].
//! A full queue delays calls and loses no records. Refused calls of one caller are counted, see
//! `refusals`.

use std::time::Duration;

use control_authz::{AuditedCall, Permit, SystemActor};
use control_state::{AppendAudit, AuditEntry, Command};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::call_end::CallEnd;
use crate::refusals::Refusals;
use crate::store::Store;

/// Most call ends that wait for the writer. Beyond it calls wait before they are answered.
const QUEUE_MAX: usize = 1024;
/// Most calls in one command. More are written with further commands.
const BATCH_MAX: usize = 128;
/// Time over which refused calls are counted before their number is recorded.
const COUNT_FOR: Duration = Duration::from_secs(60);

/// The queue of call ends to be recorded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditTrail {
    queue: mpsc::Sender<CallEnd>,
}

/// Writes the records of [`AuditTrail`] into the state; see [`AuditWriter::run`].
#[derive(Debug)]
pub struct AuditWriter {
    queue: mpsc::Receiver<CallEnd>,
    store: Store,
    refusals: Refusals,
}

impl AuditTrail {
    /// A trail and its writer, which must run.
    pub fn new(store: Store) -> (Self, AuditWriter) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let writer = AuditWriter {
            queue,
            store,
            refusals: Refusals::default(),
        };
        (Self { queue: sender }, writer)
    }

    /// Queues the end of a call; waits while the queue is full.
    pub async fn put(&self, end: CallEnd) {
        // The caller gets its answer after this. Dropping records at a full queue would let a
        // caller hide its calls behind a flood of others.
        if !end.is_recorded() && self.queue.send(end).await.is_err() {
            tracing::error!("an audit record was lost: the writer has ended");
        }
    }

    /// Number of call ends that wait for the writer.
    pub fn waiting(&self) -> usize {
        QUEUE_MAX - self.queue.capacity()
    }

    /// Queues the end of a call where the caller cannot wait, as in a destructor. A full queue
    /// loses the record, which is logged.
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
    /// Runs until stopped, then writes the records that still wait.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        let mut minutes = interval(COUNT_FOR);
        // After a stall one record of the counted calls is enough: a burst of ticks would find
        // nothing to write.
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
            // Closed before it is drained: a call that ends now is logged as lost, and is not left
            // in the queue unseen.
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
        let mut ends = Vec::new();
        for end in batch {
            ends.extend(self.refusals.count(end));
        }
        for chunk in ends.chunks(BATCH_MAX) {
            let entries = chunk.iter().cloned().map(CallEnd::into_entry);
            self.append(entries.collect()).await;
        }
    }

    /// Records the number of further refused calls since the last time.
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
            // The log is the trail of last resort: the calls were answered long ago.
            for entry in &op.entries {
                tracing::error!(error = %error, entry = ?entry, "an audit record was not stored");
            }
        }
    }
}
