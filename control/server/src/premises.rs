//! Where this process runs, for `metalmesh doctor`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use control_api::doctor::{Premises, Surveyor, TurnedAway};
use control_duties::backup::Kept;
use control_presence::Presence;
use control_store::Store;
use nix::sys::statvfs::statvfs;
use proto_types::Timestamp;

use crate::config::Config;
use crate::node::{DATA_KEY, SEALING_KEY};
use crate::tls;

/// Key of this node among its peers, in the data directory.
const PEER_KEY: &str = "peer.key";

/// What is looked at.
#[derive(Debug)]
pub(crate) struct Here {
    store: Store,
    presence: Presence,
    kept: Kept,
    /// The data directory.
    dir: PathBuf,
    /// Files that are their owner's alone.
    private: Vec<PathBuf>,
    started_at: Timestamp,
    snapshot_every: u64,
    api_certificate_ends: Option<Timestamp>,
    has_schedule: bool,
}

impl Here {
    pub(crate) fn new(
        config: &Config,
        store: &Store,
        presence: Presence,
        kept: Kept,
        dir: PathBuf,
    ) -> Self {
        let seal = config.sealing_key.clone();
        let seal = seal.unwrap_or_else(|| dir.join(SEALING_KEY));
        let mut private = vec![dir.clone(), seal, dir.join(DATA_KEY), dir.join(PEER_KEY)];
        private.extend(config.tls.as_ref().map(|files| files.key.clone()));
        Self {
            store: store.clone(),
            presence,
            kept,
            private,
            dir,
            started_at: store.now(),
            snapshot_every: config.snapshot_every_entries,
            api_certificate_ends: config.tls.as_ref().and_then(tls::ends),
            has_schedule: config.backup.is_some(),
        }
    }

    /// Free bytes, and all, of the data directory's disk.
    fn disk(&self) -> (u64, u64) {
        statvfs(&self.dir).map_or((0, 0), |disk| {
            let block = disk.fragment_size();
            (block * disk.blocks_available(), block * disk.blocks())
        })
    }

    fn exposed(&self) -> Vec<String> {
        let modes = self.private.iter().filter_map(|path| {
            // What is not there cannot be read.
            let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
            (mode & 0o077 != 0).then(|| format!("{} (mode {mode:o})", path.display()))
        });
        modes.collect()
    }
}

impl Surveyor for Here {
    fn look(&self) -> Premises {
        let (disk_free_bytes, disk_bytes) = self.disk();
        let unobserved = match self.store.is_leader() {
            true => self.presence.fleet().unobserved.into_iter().collect(),
            false => Vec::new(),
        };
        let turned_away = self.presence.turned_away().into_iter();
        let turned_away = turned_away.map(|it| TurnedAway {
            identity: it.id.to_string(),
            times: it.times,
            last: Timestamp::from_ms(it.last_ms),
        });
        Premises {
            started_at: self.started_at,
            snapshot_every: self.snapshot_every,
            disk_bytes,
            disk_free_bytes,
            api_certificate_ends: self.api_certificate_ends,
            exposed: self.exposed(),
            has_schedule: self.has_schedule,
            backups: self.kept.places(),
            unobserved,
            turned_away: turned_away.collect(),
        }
    }
}
