//! The audit trail sent elsewhere: by the node that leads, to syslog servers and collectors of
//! OpenTelemetry.
//!
//! How far each place was supplied is noted in the replicated state now and then, so that another
//! leader goes on there. What was sent since the last note is sent again after a change of leaders
//! or a restart: a record comes at least once, in order, and its sequence number tells a second
//! one.

mod otlp;
mod record;
mod settings;
mod syslog;

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use control_authz::{Permit, SystemActor};
use control_state::{AuditAnchor, AuditEntry, AuditExport, Command, MarkAuditExport, Tables};
use control_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use otlp::{NotTaken, Otlp};
use settings::To;

pub use settings::{Place, Section};
use syslog::Syslog;

/// How often new records are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// How often a node that does not lead looks whether it does.
const IDLE: Duration = Duration::from_secs(5);
/// Pause after a failure; doubled up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How far a place was supplied is noted this often at most.
const NOTE: Duration = Duration::from_secs(5);
/// Records of one batch.
const BATCH_MAX: usize = 256;

/// Starts one task for each place.
///
/// # Errors
/// When a place cannot be used at all; the message names the field.
pub fn spawn(
    tasks: &mut JoinSet<()>,
    places: &[Place],
    store: &Store,
    stop: &CancellationToken,
) -> Result<()> {
    for place in places {
        let named = || format!("audit.export {:?}", place.name);
        let exporter = Exporter {
            name: place.name.clone(),
            sink: sink(place, store.cluster()).with_context(named)?,
            store: store.clone(),
            position: None,
            retry: RETRY_MIN,
        };
        tasks.spawn(exporter.run(stop.clone()));
    }
    Ok(())
}

enum Sink {
    Syslog(Box<Syslog>),
    Otlp(Otlp),
}

fn sink(place: &Place, cluster: &str) -> Result<Sink> {
    let syslog = |host: &str, port, is_udp, tls| {
        Sink::Syslog(Box::new(Syslog::new(host, port, is_udp, tls)))
    };
    Ok(match &place.to {
        To::SyslogUdp { host, port } => syslog(host, *port, true, None),
        To::SyslogTcp { host, port } => syslog(host, *port, false, None),
        To::SyslogTls { host, port } => {
            let tls = base_outbound::trusting(place.ca_file.as_deref())?;
            syslog(host, *port, false, Some(Arc::new(tls)))
        }
        To::Otlp(url) => {
            let tls = (url.scheme() == "https")
                .then(|| base_outbound::trusting(place.ca_file.as_deref()));
            let tls = tls.transpose()?;
            let authorization = place.authorization_file.as_deref().map(|path| {
                let text = std::fs::read_to_string(path);
                text.with_context(|| format!("authorization_file: cannot read {}", path.display()))
            });
            let authorization = authorization.transpose()?;
            let authorization = authorization.as_deref().map(str::trim);
            Sink::Otlp(Otlp::new(url.clone(), authorization, tls, cluster)?)
        }
    })
}

/// Where an exporter is, while this node leads.
struct Position {
    /// The last record that was sent.
    sent: u64,
    /// The last that was noted as sent.
    noted: u64,
    noted_at: Option<Instant>,
    /// Records up to here may be missing there.
    missed: u64,
}

/// Keeps one place supplied.
struct Exporter {
    name: String,
    sink: Sink,
    store: Store,
    position: Option<Position>,
    retry: Duration,
}

/// What is to be sent next.
struct Batch {
    entries: Vec<Arc<AuditEntry>>,
    /// The last record that was dropped before all of this.
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
        // A note now saves sending twice; the store may be gone already.
        if let Err(error) = self.note(true).await {
            tracing::debug!(place = %self.name, error = %format_args!("{error:#}"), "no last note");
        }
    }

    /// Sends what there is, up to a batch; how long to wait then.
    async fn step(&mut self) -> Duration {
        if !self.store.is_leader() {
            self.position = None;
            if let Sink::Syslog(syslog) = &mut self.sink {
                syslog.close();
            }
            return IDLE;
        }
        match self.supply().await {
            Ok(is_more) => {
                if self.retry > RETRY_MIN {
                    tracing::info!(place = %self.name, "the audit trail is sent again");
                }
                self.retry = RETRY_MIN;
                if is_more { Duration::ZERO } else { LOOK }
            }
            Err(error) => {
                tracing::error!(place = %self.name, error = %format_args!("{error:#}"),
                    "the audit trail cannot be sent; it is kept and tried again");
                let pause = self.retry;
                self.retry = (self.retry * 2).min(RETRY_MAX);
                pause
            }
        }
    }

    /// Sends a batch; whether there is more.
    async fn supply(&mut self) -> Result<bool> {
        let known = self.position.as_ref().map(|it| it.sent);
        let found = self.store.read_local(|tables| {
            let export = tables.get::<AuditExport>(&self.name);
            let noted = export.map_or((0, 0), |it| (it.sequence, it.missed));
            (noted, batch(tables, known.unwrap_or(noted.0)))
        });
        let ((sequence, missed), batch) = found?;
        let position = self.position.get_or_insert(Position {
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

    async fn send(&mut self, entries: &[Arc<AuditEntry>]) -> Result<()> {
        let otlp = match &mut self.sink {
            Sink::Syslog(syslog) => return syslog.send(entries).await,
            Sink::Otlp(otlp) => otlp,
        };
        match otlp.send(entries).await {
            Ok(()) => return Ok(()),
            Err(NotTaken::Refused(_)) => {}
            Err(later) => return Err(later.into()),
        }
        // One of them is not wanted: the others must not wait for it for ever.
        for entry in entries {
            match otlp.send(std::slice::from_ref(entry)).await {
                Ok(()) => {}
                Err(NotTaken::Refused(reason)) => {
                    tracing::error!(place = %self.name, sequence = entry.sequence, reason = %reason,
                        "a record of the audit trail was refused; it stays in the trail alone");
                }
                Err(later) => return Err(later.into()),
            }
        }
        Ok(())
    }

    /// Notes how far the place was supplied, if that is worth an entry of the log.
    async fn note(&mut self, is_last: bool) -> Result<()> {
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
        let noted = self.store.propose(&permit, &command).await;
        noted.context("how far it was sent cannot be noted")?;
        position.noted = position.sent;
        position.noted_at = Some(Instant::now());
        Ok(())
    }
}

/// The records behind a sequence number.
fn batch(tables: &Tables, sent: u64) -> Batch {
    let behind = (Bound::Excluded(sent), Bound::Unbounded);
    let entries = tables.table::<AuditEntry>().range(behind).take(BATCH_MAX);
    let anchor = tables.get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let dropped = anchor
        .filter(|it| it.dropped > 0)
        .map_or(0, |it| it.sequence);
    Batch {
        entries: entries.map(|(_, slot)| Arc::clone(&slot.value)).collect(),
        dropped,
    }
}
