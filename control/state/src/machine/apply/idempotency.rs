//! An allocation that is asked for again with the same key.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::machine::command::AllocateMachine;
use crate::machine::entity::{Idempotency, IdempotencyKey, Machine};
use crate::tables::Tx;

/// A client's key is remembered for so long, milliseconds: a day.
const IDEMPOTENCY_MS: u64 = 24 * 3_600_000;

/// The machine of an earlier request with the same key.
pub(crate) fn replay(tx: &Tx<'_>, op: &AllocateMachine) -> Result<Option<Arc<Machine>>, Error> {
    let Some(wanted) = &op.idempotency else {
        return Ok(None);
    };
    let key = IdempotencyKey {
        project: op.project,
        key: wanted.key.clone(),
    };
    let record = tx
        .get::<Idempotency>(&key)
        .filter(|record| tx.now < record.expires_at);
    let Some(record) = record else {
        return Ok(None);
    };
    if record.request != wanted.request {
        return Err(Error::new(
            ErrorCode::KeyReused,
            format!(
                "idempotency key \"{}\" came with another request before",
                wanted.key
            ),
        ));
    }
    let machine = tx.get::<Machine>(&record.machine).filter(|machine| {
        machine
            .allocation
            .as_ref()
            .is_some_and(|a| a.id == record.allocation)
    });
    machine
        .map(|machine| Some(Arc::clone(machine)))
        .ok_or_else(|| {
            Error::new(
                ErrorCode::KeySpent,
                format!(
                    "machine \"{}\" of idempotency key \"{}\" was freed",
                    record.machine, wanted.key
                ),
            )
        })
}

pub(crate) fn remember(tx: &mut Tx<'_>, op: &AllocateMachine, machine: MachineId) {
    let Some(wanted) = &op.idempotency else {
        return;
    };
    let expires_at = tx.now.plus_ms(IDEMPOTENCY_MS);
    tx.save(Idempotency {
        project: op.project,
        key: wanted.key.clone(),
        request: wanted.request.clone(),
        machine,
        allocation: op.id,
        expires_at,
    });
}
