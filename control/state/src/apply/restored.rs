//! The operator's word that a restored state may be judged again.

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use super::links;
use crate::command::ReconcileRestore;
use crate::entities::{Availability, ClusterClock, Condition, Machine};
use crate::life::{restored, restored_machines};
use crate::reply::Reply;
use crate::tables::Tx;

/// Ends the hold. Machines that a tenant may have got after the backup are locked, unless the
/// operator wants them to be judged like others.
pub(super) fn reconcile(tx: &mut Tx<'_>, op: &ReconcileRestore) -> Result<Reply, Error> {
    let Some(backup) = restored(tx.tables()).cloned() else {
        let what = "the state was not restored from a backup, or was reconciled already";
        return Err(Error::new(ErrorCode::NotRestored, what));
    };
    let machines = restored_machines(tx.tables(), backup.made_at);
    let taken: Vec<MachineId> = machines
        .filter(|it| !op.judge_silent && it.may_be_taken())
        .filter(|it| it.machine.condition.state == Availability::Available)
        .map(|it| it.machine.id)
        .collect();
    for id in taken {
        let mut machine: Machine = tx.require(&id)?;
        machine.condition = Condition {
            state: Availability::Locked,
            description: format!("silent since the backup of {} was restored", backup.made_at),
            issuer: tx.actor.to_owned(),
        };
        let machine = tx.update(machine);
        // A locked machine's word on its cables counts no more, that of others does.
        let concerned = links::concerned(tx.tables(), &machine);
        links::take_again(tx, concerned);
    }
    let mut clock: ClusterClock = tx.require(&ClusterClock::ONE.to_owned())?;
    clock.restored = None;
    clock.reconciled_at = Some(tx.now);
    Ok(Reply::ClusterClock(tx.save(clock)))
}
