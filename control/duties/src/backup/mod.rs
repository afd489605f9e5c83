//! Scheduled backups, written by the leader to a directory or an S3-compatible store.
//!
//! The due time of the next backup follows from the newest one in the target, so a restart or a new
//! leader does not make an extra one. A backup gets its name only when it is complete, and older ones
//! are removed only after that.

mod error;
mod opening;
mod place;
mod s3;
mod settings;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base_runtime::Chain;
use control_backup::{BackupPieces, BackupPlace, Backups, MakeError};
use control_store::Store;
use object_store::WriteMultipart;
use parking_lot::Mutex;
use proto_backup::Recipients;
use proto_types::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use s3::S3;
pub use settings::{BackupLocation, BackupSection, Schedule};

use crate::SettingError;
use error::ScheduledBackupError;
use opening::TargetOpening;
use place::{BackupTarget, StoredBackup};

/// Pause after a failure, and interval at which a follower checks whether it leads.
const RETRY: Duration = Duration::from_secs(60);
/// Size of one part of an upload, bytes.
const PART_BYTES: usize = 8 << 20;
/// Time limit for aborting an upload. Beyond it, the parts are left in the target and a warning is
/// logged.
const GIVE_UP: Duration = Duration::from_secs(5);
/// Maximum parts in flight. More wait, which bounds the memory of an upload.
const PARTS_MAX: usize = 2;

/// The state of each backup place, as this node knows it while it leads. Cheap to clone (`Arc`).
#[derive(Debug, Clone, Default)]
pub struct BackupPlaces(Arc<Mutex<BTreeMap<String, BackupPlace>>>);

impl BackupPlaces {
    /// All places.
    pub fn places(&self) -> Vec<BackupPlace> {
        let kept = self.0.lock();
        kept.values().cloned().collect()
    }

    /// Changes the state of the place of this name.
    fn change(&self, name: &str, every: Duration, change: impl FnOnce(&mut BackupPlace)) {
        let mut kept = self.0.lock();
        let place = kept.entry(name.to_owned()).or_insert_with(|| BackupPlace {
            place: name.to_owned(),
            every_minutes: every.as_secs() / 60,
            ..BackupPlace::default()
        });
        change(place);
    }
}

/// Starts one task for each target. A directory that cannot be used is tried again: its disk may come
/// later, and no node stays down because of its backups.
///
/// # Errors
/// The settings of a bucket cannot be used; the message names the field.
pub fn spawn(
    tasks: &mut JoinSet<()>,
    schedule: Option<&Schedule>,
    store: &Store,
    backups: &Backups,
    kept: &BackupPlaces,
    stop: &CancellationToken,
) -> Result<(), SettingError> {
    let Some(schedule) = schedule else {
        return Ok(());
    };
    for location in &schedule.places {
        let opening = TargetOpening {
            location: location.clone(),
            schedule: schedule.clone(),
            store: store.clone(),
            backups: backups.clone(),
            kept: kept.clone(),
        };
        let place = match (opening.open(), location) {
            (Err(error), BackupLocation::S3(_)) => return Err(error),
            (opened, _) => opened.ok(),
        };
        tasks.spawn(opening.run(place, stop.clone()));
    }
    Ok(())
}

/// Makes the scheduled backups of one target.
struct Keeper {
    place: BackupTarget,
    schedule: Schedule,
    store: Store,
    backups: Backups,
    kept: BackupPlaces,
}

impl Keeper {
    async fn run(self, stop: CancellationToken) {
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = self.look(&stop).await;
        }
    }

    /// Changes the state of the place.
    fn change(&self, change: impl FnOnce(&mut BackupPlace)) {
        self.kept
            .change(&self.place.name, self.schedule.every, change);
    }

    /// Makes a backup if one is due. Returns the pause until the next check.
    async fn look(&self, stop: &CancellationToken) -> Duration {
        if !self.store.is_leader() {
            return RETRY;
        }
        match self.make_if_due(stop).await {
            Ok(pause) => {
                self.change(|place| place.error.clear());
                pause
            }
            Err(_) if stop.is_cancelled() => RETRY,
            Err(error) => {
                let place = &self.place.name;
                let error = Chain(&error).to_string();
                tracing::error!(place = %place, error = %error, "no backup was made");
                self.change(|place| place.error = error);
                RETRY
            }
        }
    }

    async fn make_if_due(
        &self,
        stop: &CancellationToken,
    ) -> Result<Duration, ScheduledBackupError> {
        let now_ms = self.store.now().ms();
        let there = unless(stop, self.place.list()).await?;
        let there = there.map_err(ScheduledBackupError::at("cannot list backups"))?;
        let every_ms = u64::try_from(self.schedule.every.as_millis()).unwrap_or(u64::MAX);
        let made: Vec<u64> = there.iter().map(|backup| backup.made_ms).collect();
        let newest = made.iter().max().copied();
        self.change(|place| place.newest = newest.map(Timestamp::from_ms));
        let left_ms = left_ms(&made, every_ms, now_ms);
        if left_ms > 0 {
            // The pause is bounded: the leadership may change before the backup is due.
            return Ok(Duration::from_millis(left_ms).min(RETRY));
        }
        if made.iter().any(|made_ms| *made_ms > now_ms) {
            tracing::warn!(place = %self.place.name, "there is a backup from the future: check \
                the clocks of this node and of the place");
        }
        let name = self.make(now_ms, stop).await?;
        self.change(|place| place.newest = Some(Timestamp::from_ms(now_ms)));
        let surplus = (there.len() + 1).saturating_sub(self.schedule.keep);
        let latest = self.place.name_of(now_ms.saturating_add(every_ms));
        let mut there = there;
        there.sort_by_key(|backup| !backup.is_after(&latest));
        let removed = self.remove(&there[..surplus.min(there.len())]).await;
        tracing::info!(place = %self.place.name, backup = %name, removed, "backup made");
        Ok(RETRY.min(self.schedule.every))
    }

    /// Removes surplus backups and returns the number removed. Those that cannot be removed are tried
    /// again after the next backup.
    async fn remove(&self, old: &[StoredBackup]) -> usize {
        let mut removed = 0;
        for one in old {
            match self.place.remove(one).await {
                Ok(()) => removed += 1,
                Err(error) => {
                    let (place, old) = (&self.place.name, &one.path);
                    tracing::warn!(place = %place, backup = %old, error = %Chain(&error),
                        "an old backup cannot be removed");
                }
            }
        }
        if let Err(error) = self.place.sweep().await {
            tracing::warn!(place = %self.place.name, error = %Chain(&error),
                "unfinished backups cannot be removed");
        }
        removed
    }

    /// Makes a backup and returns its name.
    async fn make(
        &self,
        now_ms: u64,
        stop: &CancellationToken,
    ) -> Result<String, ScheduledBackupError> {
        let recipients = self.schedule.recipients.iter().map(String::as_str);
        let recipients = Recipients::parse(recipients).map_err(MakeError::from)?;
        let pieces = self.backups.begin(recipients).await?;
        let name = self.place.name_of(now_ms);
        let upload = unless(stop, self.place.upload(&name)).await?;
        let upload = upload.map_err(ScheduledBackupError::at("cannot begin the upload"))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let sent = unless(stop, self.send(pieces, &mut upload)).await;
        if let Err(error) = sent.and_then(|sent| sent) {
            // The parts sent so far are not a complete backup. Without the abort a bucket would keep
            // them, invisible and at a cost, until its own rules remove them.
            let left = match tokio::time::timeout(GIVE_UP, upload.abort()).await {
                Ok(Ok(())) => return Err(error),
                Ok(Err(left)) => Chain(&self.place.explain(left)).to_string(),
                Err(late) => late.to_string(),
            };
            let place = &self.place.name;
            tracing::warn!(place = %place, error = %left,
                "the upload was not aborted; its parts stay in the target");
            return Err(error);
        }
        let finished = upload.finish().await;
        finished
            .map_err(|error| self.place.explain(error))
            .map_err(ScheduledBackupError::at("cannot finish the backup"))?;
        Ok(name)
    }

    /// Sends all parts of a backup. The caller completes the upload.
    async fn send(
        &self,
        mut pieces: BackupPieces,
        upload: &mut WriteMultipart,
    ) -> Result<(), ScheduledBackupError> {
        while let Some(piece) = pieces.bytes.recv().await {
            let sent = upload.wait_for_capacity(PARTS_MAX).await;
            sent.map_err(|error| self.place.explain(error))
                .map_err(ScheduledBackupError::at("cannot send a part of the backup"))?;
            upload.put(piece);
        }
        // The pieces end in the same way after a failure. Only the outcome tells that they are a
        // complete backup.
        let outcome = pieces.outcome.await;
        outcome.map_err(|_| MakeError::Interrupted)??;
        Ok(())
    }
}

/// Milliseconds until the next backup is due. A backup dated more than `every_ms` in the future is
/// ignored: a wrong clock would otherwise block all backups until then.
fn left_ms(made: &[u64], every_ms: u64, now_ms: u64) -> u64 {
    let latest = now_ms.saturating_add(every_ms);
    let newest = made.iter().filter(|made_ms| **made_ms <= latest).max();
    let due = newest.map_or(0, |newest| newest.saturating_add(every_ms));
    due.saturating_sub(now_ms)
}

/// Runs the work to its end.
///
/// # Errors
/// [`ScheduledBackupError::Stopped`] if the node stops before.
async fn unless<T>(
    stop: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, ScheduledBackupError> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(ScheduledBackupError::Stopped),
        done = work => Ok(done),
    }
}

/// Reads the secret in the file that `field` names, without surrounding white space.
fn secret(field: &str, path: &std::path::Path) -> Result<String, SettingError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        SettingError::caused(field, format!("cannot read {}", path.display()), error)
    })?;
    let text = text.trim();
    if text.is_empty() {
        return Err(SettingError::new(
            field,
            format!("{} is empty", path.display()),
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::left_ms;

    #[test]
    fn backups_are_due_by_the_newest_that_can_be() {
        const EVERY: u64 = 1000;
        for (made, now, left) in [
            (&[][..], 5000, 0),
            (&[3000], 5000, 0),
            (&[4500, 3000], 5000, 500),
            // A clock that is a little ahead; one that is wrong.
            (&[5600], 5000, 1600),
            (&[4500, 90_000], 5000, 500),
            (&[90_000], 5000, 0),
        ] {
            assert_eq!(left_ms(made, EVERY, now), left, "{made:?}");
        }
    }
}
