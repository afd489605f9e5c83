//! After a restore: machines as the backup knows them, beside what was observed since.
//!
//! The state lacks what happened after the backup. A machine that was allocated since is free in
//! it, and silent: to judge it by time would power-cycle and wipe a tenant's machine. So nothing is
//! judged, and no order of the life cycle goes out, until an operator has compared the two.

use proto_types::Timestamp;

use crate::entities::{ClusterClock, EventLog, Machine, Phase, Restored};
use crate::tables::Tables;

/// The backup that the state is from, as long as nobody has reconciled it.
pub fn restored(tables: &Tables) -> Option<&Restored> {
    clock(tables)?.restored.as_ref()
}

/// When the state was reconciled last; the beginning of time when it never was.
pub(crate) fn reconciled_at(tables: &Tables) -> Timestamp {
    clock(tables)
        .and_then(|clock| clock.reconciled_at)
        .unwrap_or_default()
}

fn clock(tables: &Tables) -> Option<&ClusterClock> {
    let clock = tables.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
    clock.map(AsRef::as_ref)
}

/// A machine after a restore.
#[derive(Debug, Clone, Copy)]
pub struct RestoredMachine<'a> {
    /// As the backup knows it, with what was reported since.
    pub machine: &'a Machine,
    /// Its events, those of after the restore among them.
    pub log: Option<&'a EventLog>,
    /// `true` if anything was heard of it since the backup.
    pub is_observed: bool,
}

impl RestoredMachine<'_> {
    /// `true` if it has to be left alone: nobody has it as far as the backup knows, and it does not
    /// say that it waits. A tenant may have got it after the backup.
    pub fn may_be_taken(&self) -> bool {
        let is_known = !matches!(self.machine.phase, Phase::New);
        is_known && self.machine.allocation.is_none() && !self.is_observed
    }
}

/// Every machine, beside what was observed of it since the backup was made.
pub fn restored_machines(
    tables: &Tables,
    made_at: Timestamp,
) -> impl Iterator<Item = RestoredMachine<'_>> {
    tables.all::<Machine>().map(move |machine| {
        let log = tables.get::<EventLog>(&machine.id).map(AsRef::as_ref);
        RestoredMachine {
            machine,
            log,
            is_observed: log.is_some_and(|log| log.last_event_time > made_at),
        }
    })
}
