//! Idempotency keys of allocations: a repeated request gets the machine of the first.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::machine::command::AllocateMachine;
use crate::machine::entity::{Idempotency, IdempotencyKey, Machine};
use crate::tables::Tx;

/// Life of a client's key, milliseconds: a day. A later request with the same key is a new one.
const IDEMPOTENCY_MS: u64 = 24 * 3_600_000;

/// The machine of an earlier request with the same key. `None` means that the key is new.
///
/// # Errors
/// `KeyReused` if the earlier request differs; `KeySpent` if its machine was freed.
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
                "idempotency key \"{}\" was used with a different request before",
                wanted.key
            ),
        ));
    }
    // By the allocation and not the machine alone: freed and allocated again, it is another
    // tenant's.
    let machine = tx.get::<Machine>(&record.machine).filter(|machine| {
        machine
            .allocation
            .as_ref()
            .is_some_and(|allocation| allocation.id == record.allocation)
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

/// Remembers the key of a request, if it has one.
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
