//! The node's disk, key files and certificate, inspected for `metalmesh doctor`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use control_api::doctor::{Premises, Surveyor, TurnedAway};
use control_duties::backup::BackupPlaces;
use control_presence::Presence;
use control_store::Store;
use nix::sys::statvfs::statvfs;
use proto_types::Timestamp;

use crate::config::Config;
use crate::data_dir::{DATA_KEY, PEER_KEY, SEALING_KEY};
use crate::tls;

/// Inspects the host of this node.
#[derive(Debug)]
pub(crate) struct HostInspector {
    store: Store,
    presence: Presence,
    backup_places: BackupPlaces,
    /// The data directory.
    dir: PathBuf,
    /// Files and directories that only their owner may access.
    private: Vec<PathBuf>,
    started_at: Timestamp,
    snapshot_every: u64,
    api_certificate_ends: Option<Timestamp>,
    has_schedule: bool,
}

impl HostInspector {
    /// An inspector of the node with this configuration.
    pub(crate) fn new(
        config: &Config,
        store: &Store,
        presence: Presence,
        backup_places: BackupPlaces,
        dir: PathBuf,
    ) -> Self {
        let seal = config.sealing_key.clone();
        let seal = seal.unwrap_or_else(|| dir.join(SEALING_KEY));
        let mut private = vec![dir.clone(), seal, dir.join(DATA_KEY), dir.join(PEER_KEY)];
        private.extend(config.tls.as_ref().map(|files| files.key.clone()));
        Self {
            store: store.clone(),
            presence,
            backup_places,
            private,
            dir,
            started_at: store.now(),
            snapshot_every: config.snapshot_every_entries,
            api_certificate_ends: config.tls.as_ref().and_then(tls::ends),
            has_schedule: config.backup.is_some(),
        }
    }

    /// Free bytes and total bytes of the data directory's disk. Both are 0 if they cannot be read.
    fn disk(&self) -> (u64, u64) {
        statvfs(&self.dir).map_or((0, 0), |disk| {
            let block = disk.fragment_size();
            (block * disk.blocks_available(), block * disk.blocks())
        })
    }

    /// The private files that others may access, with their modes.
    fn exposed(&self) -> Vec<String> {
        let modes = self.private.iter().filter_map(|path| {
            // A file that does not exist exposes nothing.
            let metadata = std::fs::metadata(path).ok()?;
            let mode = metadata.permissions().mode() & 0o777;
            // To pass through a directory shows nothing of it: agents on the same host have theirs
            // below the data directory.
            let others = if metadata.is_dir() { 0o066 } else { 0o077 };
            (mode & others != 0).then(|| format!("{} (mode {mode:o})", path.display()))
        });
        modes.collect()
    }
}

impl Surveyor for HostInspector {
    fn look(&self) -> Premises {
        let (disk_free_bytes, disk_bytes) = self.disk();
        let unobserved = match self.store.is_leader() {
            true => self.presence.fleet().unobserved.into_iter().collect(),
            false => Vec::new(),
        };
        let turned_away = self.presence.turned_away().into_iter();
        let turned_away = turned_away.map(|refused| TurnedAway {
            identity: refused.id.to_string(),
            times: refused.times,
            last: Timestamp::from_ms(refused.last_ms),
        });
        Premises {
            started_at: self.started_at,
            snapshot_every: self.snapshot_every,
            disk_bytes,
            disk_free_bytes,
            api_certificate_ends: self.api_certificate_ends,
            exposed: self.exposed(),
            has_schedule: self.has_schedule,
            backups: self.backup_places.places(),
            unobserved,
            turned_away: turned_away.collect(),
        }
    }
}
