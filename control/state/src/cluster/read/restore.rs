//! The hold of a state that was restored from a backup.

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::cluster::entity::{ClusterClock, Restored};
use crate::tables::Tables;

/// The refusal of commands that wait for the reconciliation of a restored state.
pub(crate) fn not_reconciled() -> Error {
    let what = "the cluster was restored from a backup, and its operator did not reconcile it yet";
    Error::new(ErrorCode::NotReconciled, what)
}

/// The backup that the state was restored from. `None` means that there was none, or that an
/// operator has reconciled the state since.
pub fn restored(tables: &Tables) -> Option<&Restored> {
    clock(tables)?.restored.as_ref()
}

/// Time of the last reconciliation. 0 means that there was none.
pub(crate) fn reconciled_at(tables: &Tables) -> Timestamp {
    clock(tables)
        .and_then(|clock| clock.reconciled_at)
        .unwrap_or_default()
}

fn clock(tables: &Tables) -> Option<&ClusterClock> {
    let clock = tables.get::<ClusterClock>(&ClusterClock::ONE.to_owned());
    clock.map(AsRef::as_ref)
}
