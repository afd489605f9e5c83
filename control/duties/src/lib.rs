//! Duties of the leader: what time alone asks for (`tick`), firewalls that leave the VPN (`vpn`),
//! scheduled backups ([`backup`]) and the audit trail on its way elsewhere ([`export`]).
//!
//! Each duty has a pure `plan`, which looks at the state and says what is to be proposed, and an
//! `act`, which proposes it. Duties are level-triggered: what one round misses the next one does.
//!
//! Invariants:
//! - only the leader acts; a node that lost the lead has its proposals refused by the store;
//! - a round that would change nothing writes nothing to the log;
//! - a failed round is logged and the next one tries again, without a pile of retries.

pub mod backup;
pub mod export;
mod tick;
mod vpn;

use std::sync::Arc;

use anyhow::Result;
use control_backup::Backups;
use control_presence::Presence;
use control_store::Store;
use control_vpn::Vpn;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use backup::{Kept, Schedule};
use export::Place;

pub use tick::{HEARD_MAX, ROUND};

/// What the duties work with.
#[derive(Debug)]
pub struct Duties<'a> {
    /// The replicated state.
    pub store: &'a Store,
    /// When machines and agents were heard.
    pub presence: Presence,
    /// The VPN, if there is one.
    pub vpn: Option<&'a Arc<dyn Vpn>>,
    /// Makes backups.
    pub backups: &'a Backups,
    /// When backups are made; `None` means never.
    pub schedule: Option<&'a Schedule>,
    /// Where it is noted which backups are there.
    pub kept: &'a Kept,
    /// Where the audit trail is sent.
    pub exports: &'a [Place],
}

impl Duties<'_> {
    /// Starts all duties; they end when `stop` is cancelled.
    ///
    /// # Errors
    /// A place for backups or for the audit trail cannot be used; the message names the field.
    pub fn spawn(self, tasks: &mut JoinSet<()>, stop: &CancellationToken) -> Result<()> {
        tasks.spawn(tick::run(self.store.clone(), self.presence, stop.clone()));
        vpn::spawn(tasks, self.store, self.vpn, stop);
        backup::spawn(
            tasks,
            self.schedule,
            self.store,
            self.backups,
            self.kept,
            stop,
        )?;
        export::spawn(tasks, self.exports, self.store, stop)
    }
}
