//! Background duties of the leader: deadlines and liveliness (`tick`), removal of released firewalls
//! from the VPN (`vpn`), waves of rollouts (`rollout`), scheduled backups ([`backup`]) and the export
//! of the audit trail ([`export`]).
//!
//! Duties are level-triggered: each round computes its work from the state, so work that one round
//! misses is done by the next one.
//!
//! Invariants:
//! - only the leader acts; the store refuses the proposals of a node that lost the leadership;
//! - a round that would change nothing writes nothing to the log;
//! - each duty runs one round at a time; a failed round is logged and repeated after a pause;
//! - a backup is removed only after a newer one is complete;
//! - an audit record is sent to each export target at least once and in order, unless the target refuses
//!   it or the trail dropped it first; both are logged.

pub mod backup;
pub mod export;
mod rollout;
mod setting_error;
mod silence;
mod tick;
mod vpn;

use std::sync::Arc;

use control_backup::Backups;
use control_presence::Presence;
use control_store::Store;
use control_vpn::Vpn;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use backup::{BackupPlaces, Schedule};
use export::ExportTarget;

pub use setting_error::SettingError;
pub use tick::{HEARD_MAX, ROUND};

/// The dependencies of the duties.
#[derive(Debug)]
pub struct Duties<'a> {
    /// The replicated state.
    pub store: &'a Store,
    /// Last contacts of machines and agents.
    pub presence: Presence,
    /// The VPN. `None` means that there is none.
    pub vpn: Option<&'a Arc<dyn Vpn>>,
    /// Makes backups.
    pub backups: &'a Backups,
    /// The backup schedule. `None` means that no backups are scheduled.
    pub schedule: Option<&'a Schedule>,
    /// The known state of each backup place, updated by the duty.
    pub backup_places: &'a BackupPlaces,
    /// The targets of the audit trail.
    pub exports: &'a [ExportTarget],
}

impl Duties<'_> {
    /// Starts all duties. They end when `stop` is cancelled.
    ///
    /// # Errors
    /// A target of backups or of the audit trail cannot be used; the message names the field.
    pub fn spawn(
        self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), SettingError> {
        let presence = self.presence.clone();
        tasks.spawn(tick::run(self.store.clone(), presence, stop.clone()));
        tasks.spawn(rollout::run(
            self.store.clone(),
            self.presence,
            stop.clone(),
        ));
        vpn::spawn(tasks, self.store, self.vpn, stop);
        backup::spawn(
            tasks,
            self.schedule,
            self.store,
            self.backups,
            self.backup_places,
            stop,
        )?;
        export::spawn(tasks, self.exports, self.store, stop)
    }
}
