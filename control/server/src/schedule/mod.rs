//! Scheduled backups: made by the node that leads, into a directory or an S3-compatible store.
//!
//! When the next one is due follows from the newest that is there, so a restart or another leader
//! makes none too many. A backup appears under its name only when it is whole, and older ones are
//! removed only after that.

mod place;
mod settings;
mod trouble;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use control_api::backup::{Backups, Pieces};
use control_backup::Recipients;
use control_store::Store;
use object_store::WriteMultipart;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use settings::{Schedule, Section};

use place::Opened;

/// How long after a failure, and how often a node that does not lead looks whether it does.
const RETRY: Duration = Duration::from_secs(60);
/// Bytes of one part of an upload.
const PART_BYTES: usize = 8 << 20;
/// Parts on their way at the same time.
const PARTS_MAX: usize = 2;

/// Starts one task for each place.
///
/// # Errors
/// When a place cannot be used at all; the message names the field.
pub(crate) fn spawn(
    tasks: &mut JoinSet<()>,
    schedule: Option<&Schedule>,
    store: &Store,
    backups: &Backups,
    stop: &CancellationToken,
) -> Result<()> {
    let Some(schedule) = schedule else {
        return Ok(());
    };
    for place in &schedule.places {
        let keeper = Keeper {
            place: Opened::new(place, store.cluster())?,
            schedule: schedule.clone(),
            store: store.clone(),
            backups: backups.clone(),
        };
        tasks.spawn(keeper.run(stop.clone()));
    }
    Ok(())
}

/// Keeps one place supplied.
struct Keeper {
    place: Opened,
    schedule: Schedule,
    store: Store,
    backups: Backups,
}

impl Keeper {
    async fn run(self, stop: CancellationToken) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = tokio::select! {
                () = stop.cancelled() => return,
                pause = self.look() => pause,
            };
        }
    }

    /// Makes a backup if one is due; how long to wait then.
    async fn look(&self) -> Duration {
        if !self.store.is_leader() {
            return RETRY;
        }
        match self.make_if_due().await {
            Ok(pause) => pause,
            Err(error) => {
                let place = &self.place.name;
                tracing::error!(place = %place, error = %format_args!("{error:#}"), "no backup was made");
                RETRY
            }
        }
    }

    async fn make_if_due(&self) -> Result<Duration> {
        let now_ms = self.store.now().ms();
        let there = self.place.list().await.context("cannot list backups")?;
        let every_ms = u64::try_from(self.schedule.every.as_millis()).unwrap_or(u64::MAX);
        let newest_ms = there.iter().map(|it| it.made_ms).max();
        let due_ms = newest_ms.map_or(0, |newest| newest.saturating_add(every_ms));
        if due_ms > now_ms {
            // Not longer than a while: who leads may change.
            return Ok(Duration::from_millis(due_ms - now_ms).min(RETRY));
        }
        let name = self.make(now_ms).await?;
        let surplus = (there.len() + 1).saturating_sub(self.schedule.keep);
        for old in there.iter().take(surplus) {
            self.place
                .remove(old)
                .await
                .context("cannot remove an old backup")?;
        }
        tracing::info!(place = %self.place.name, backup = %name, removed = surplus, "backup made");
        Ok(RETRY.min(self.schedule.every))
    }

    /// Makes a backup; its name.
    async fn make(&self, now_ms: u64) -> Result<String> {
        let recipients = self.schedule.recipients.iter().map(String::as_str);
        let pieces = self.backups.begin(Recipients::parse(recipients)?).await?;
        let name = self.place.name_of(now_ms);
        let upload = self.place.upload(&name).await;
        let upload = upload.context("cannot begin the upload")?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        if let Err(error) = self.send(pieces, &mut upload).await {
            // What was sent is not whole and must not get a name, nor cost space.
            if let Err(left) = upload.abort().await {
                let error = self.place.explain(left);
                let place = &self.place.name;
                tracing::warn!(place = %place, error = %format_args!("{error:#}"), "parts are left");
            }
            return Err(error);
        }
        let finished = upload.finish().await;
        finished
            .map_err(|error| self.place.explain(error))
            .context("cannot finish the backup")?;
        Ok(name)
    }

    /// Sends all of a backup but its end.
    async fn send(&self, mut pieces: Pieces, upload: &mut WriteMultipart) -> Result<()> {
        while let Some(piece) = pieces.bytes.recv().await {
            let sent = upload.wait_for_capacity(PARTS_MAX).await;
            sent.map_err(|error| self.place.explain(error))
                .context("cannot send a part of the backup")?;
            upload.put(piece);
        }
        pieces.outcome.await??;
        Ok(())
    }
}

/// Reads a secret of one line.
fn secret(field: &str, path: &std::path::Path) -> Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{field}: cannot read {}", path.display()))?;
    let text = text.trim();
    if text.is_empty() {
        bail!("{field}: {} is empty", path.display());
    }
    Ok(text.to_owned())
}
