//! Opens a target, and tries again while its directory cannot be used.

use base_runtime::Chain;
use control_backup::Backups;
use control_store::Store;
use tokio_util::sync::CancellationToken;

use super::place::BackupTarget;
use super::settings::{BackupLocation, Schedule};
use super::{BackupPlaces, Keeper, RETRY};
use crate::SettingError;

/// A target that is to be opened, with all that its keeper needs.
pub(super) struct TargetOpening {
    pub(super) location: BackupLocation,
    pub(super) schedule: Schedule,
    pub(super) store: Store,
    pub(super) backups: Backups,
    pub(super) kept: BackupPlaces,
}

impl TargetOpening {
    /// Opens the target.
    ///
    /// # Errors
    /// It cannot be used; the message names the field.
    pub(super) fn open(&self) -> Result<BackupTarget, SettingError> {
        let store = &self.store;
        BackupTarget::new(&self.location, store.cluster(), store.cluster_id())
    }

    /// Keeps the target supplied, from when it can be opened on.
    pub(super) async fn run(self, opened: Option<BackupTarget>, stop: CancellationToken) {
        let mut opened = opened;
        let mut told = String::new();
        let place = loop {
            if let Some(place) = opened.take() {
                break place;
            }
            match self.open() {
                Ok(place) => opened = Some(place),
                Err(error) => {
                    self.tell(&error, &mut told);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(RETRY) => {}
                    }
                }
            }
        };
        let keeper = Keeper {
            place,
            schedule: self.schedule,
            store: self.store,
            backups: self.backups,
            kept: self.kept,
        };
        keeper.run(stop).await;
    }

    /// Logs the error unless it was logged already. The state of the place is that of the leader.
    fn tell(&self, error: &SettingError, told: &mut String) {
        let text = Chain(error).to_string();
        if self.store.is_leader()
            && let BackupLocation::Directory(dir) = &self.location
        {
            let name = dir.display().to_string();
            self.kept.change(&name, self.schedule.every, |place| {
                place.error.clone_from(&text);
            });
        }
        if *told != text {
            tracing::error!(error = %text, "no backups can be made; trying again");
            *told = text;
        }
    }
}
