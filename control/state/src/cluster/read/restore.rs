//! The hold of a state that was restored from a backup.

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::cluster::entity::{ClusterClock, Restored};
use crate::tables::Tables;

/// Refuses what waits for the operator's word.
pub(crate) fn not_reconciled() -> Error {
    let what = "the cluster was restored from a backup, and its operator did not reconcile it yet";
    Error::new(ErrorCode::NotReconciled, what)
}

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
