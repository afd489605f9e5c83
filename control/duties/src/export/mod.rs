//! Export of the audit trail by the leader, to syslog servers and collectors of OpenTelemetry.
//!
//! The position of each target is recorded in the replicated state from time to time, so that a new
//! leader continues there. Records sent after the last recorded position are sent again after a
//! restart or a change of leaders: each record arrives at least once and in order, and duplicates have
//! the same sequence number.

mod error;
mod otlp;
mod record;
mod settings;
mod sink;
mod syslog;
mod target;

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base_runtime::{Backoff, Chain};
use control_authz::{Permit, SystemActor};
use control_state::{AuditAnchor, AuditEntry, AuditExport, Command, MarkAuditExport, Tables};
use control_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::SettingError;
use error::{ExportError, OtlpError};
use sink::ExportSink;

pub use settings::AuditSection;
pub use target::{ExportProtocol, ExportTarget};

/// Interval between two checks for new records.
const LOOK: Duration = Duration::from_secs(1);
/// Interval at which a follower checks whether it leads.
const IDLE: Duration = Duration::from_secs(5);
/// Pauses after failures: 1 s, doubled up to 60 s, with jitter.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Minimum interval between two records of a target's position. Each is an entry of the Raft log.
const NOTE: Duration = Duration::from_secs(5);
/// Maximum records of one batch.
const BATCH_MAX: usize = 256;

/// Starts one task for each target.
///
/// # Errors
/// A target cannot be used; the message names the field.
pub fn spawn(
    tasks: &mut JoinSet<()>,
    places: &[ExportTarget],
    store: &Store,
    stop: &CancellationToken,
) -> Result<(), SettingError> {
    for place in places {
        let exporter = Exporter {
            name: place.name.clone(),
            sink: ExportSink::open(place, store.cluster())?,
            store: store.clone(),
            position: None,
            failures: 0,
        };
        tasks.spawn(exporter.run(stop.clone()));
    }
    Ok(())
}

/// The position of an exporter, known while this node leads.
struct ExportPosition {
    /// Sequence number of the last record that was sent.
    sent: u64,
    /// The last sequence number that the state records as sent.
    noted: u64,
    noted_at: Option<Instant>,
    /// Records up to this sequence number may be missing in the target.
    missed: u64,
}

/// Exports the audit trail to one target.
struct Exporter {
    name: String,
    sink: ExportSink,
    store: Store,
    /// `None` means that it has to be read from the state.
    position: Option<ExportPosition>,
    /// Failures in a row.
    failures: u32,
}

/// The next records to send.
struct ExportBatch {
    entries: Vec<Arc<AuditEntry>>,
    /// Sequence number of the last record that the trail dropped. 0 means none.
    dropped: u64,
}

impl Exporter {
    async fn run(mut self, stop: CancellationToken) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                next = self.step() => pause = next,
            }
        }
        // Recording the position now avoids duplicates at the next leader. The store may be closed
        // already, so a failure is not an error.
        if let Err(error) = self.note(true).await {
            tracing::debug!(place = %self.name, error = %Chain(&error),
                "the last position of the target is not recorded");
        }
    }

    /// Sends up to one batch. Returns the pause until the next step.
    async fn step(&mut self) -> Duration {
        if !self.store.is_leader() {
            self.position = None;
            if let ExportSink::Syslog(syslog) = &mut self.sink {
                syslog.close();
            }
            return IDLE;
        }
        match self.supply().await {
            Ok(is_more) => {
                if self.failures > 0 {
                    tracing::info!(place = %self.name, "the audit trail is sent again");
                }
                self.failures = 0;
                if is_more { Duration::ZERO } else { LOOK }
            }
            Err(error) => {
                tracing::error!(place = %self.name, error = %Chain(&error),
                    "the audit trail cannot be sent; it is kept and tried again");
                let pause = RETRY.pause(self.failures);
                self.failures = self.failures.saturating_add(1);
                pause
            }
        }
    }

    /// Sends up to one batch. Returns `true` if there may be more records.
    async fn supply(&mut self) -> Result<bool, ExportError> {
        let known = self.position.as_ref().map(|position| position.sent);
        let found = self.store.read_local(|tables| {
            let export = tables.get::<AuditExport>(&self.name);
            let noted = export.map_or((0, 0), |export| (export.sequence, export.missed));
            (noted, batch(tables, known.unwrap_or(noted.0)))
        });
        let ((sequence, missed), batch) = found?;
        let position = self.position.get_or_insert(ExportPosition {
            sent: sequence,
            noted: sequence,
            noted_at: None,
            missed,
        });
        if batch.dropped > position.sent && position.sent > 0 && position.missed < batch.dropped {
            position.missed = batch.dropped;
            tracing::error!(place = %self.name, sent = position.sent, dropped = batch.dropped,
                "records of the audit trail were dropped before they could be sent");
        }
        if let Some(last) = batch.entries.last() {
            let last = last.sequence;
            self.send(&batch.entries).await?;
            if let Some(position) = &mut self.position {
                position.sent = last;
            }
        }
        self.note(false).await?;
        Ok(batch.entries.len() == BATCH_MAX)
    }

    async fn send(&mut self, entries: &[Arc<AuditEntry>]) -> Result<(), ExportError> {
        let otlp = match &mut self.sink {
            ExportSink::Syslog(syslog) => return Ok(syslog.send(entries).await?),
            ExportSink::Otlp(otlp) => otlp,
        };
        match otlp.send(entries).await {
            Ok(()) => return Ok(()),
            Err(OtlpError::Refused(_)) => {}
            Err(later) => return Err(later.into()),
        }
        // The collector refuses a batch as a whole. The records are sent one by one, so that the
        // refused ones do not block the others for ever.
        for entry in entries {
            match otlp.send(std::slice::from_ref(entry)).await {
                Ok(()) => {}
                Err(OtlpError::Refused(reason)) => {
                    tracing::error!(place = %self.name, sequence = entry.sequence, reason = %reason,
                        "a record of the audit trail was refused; it stays in the trail alone");
                }
                Err(later) => return Err(later.into()),
            }
        }
        Ok(())
    }

    /// Records the target's position in the state, if it changed and the last record is old enough.
    async fn note(&mut self, is_last: bool) -> Result<(), ExportError> {
        let Some(position) = &mut self.position else {
            return Ok(());
        };
        let is_due = is_last || position.noted_at.is_none_or(|at| at.elapsed() >= NOTE);
        if position.sent == position.noted || !is_due {
            return Ok(());
        }
        let op = MarkAuditExport {
            name: self.name.clone(),
            sequence: position.sent,
            missed: position.missed,
        };
        let command = Command::new(self.store.now(), "metalmeshd", op);
        let permit = Permit::system(SystemActor::Audit);
        self.store.propose(&permit, &command).await?;
        position.noted = position.sent;
        position.noted_at = Some(Instant::now());
        Ok(())
    }
}

/// The records after a sequence number, up to one batch.
fn batch(tables: &Tables, sent: u64) -> ExportBatch {
    let behind = (Bound::Excluded(sent), Bound::Unbounded);
    let entries = tables.table::<AuditEntry>().range(behind).take(BATCH_MAX);
    let anchor = tables.get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let dropped = anchor
        .filter(|anchor| anchor.dropped > 0)
        .map_or(0, |anchor| anchor.sequence);
    ExportBatch {
        entries: entries.map(|(_, slot)| Arc::clone(&slot.value)).collect(),
        dropped,
    }
}
