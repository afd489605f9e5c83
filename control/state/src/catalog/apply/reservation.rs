//! Reservations of machines of a size.

use proto_errors::Error;
use proto_types::PartitionId;

use crate::catalog::command::{
    CreateSizeReservation, DeleteSizeReservation, UpdateSizeReservation,
};
use crate::catalog::entity::{Partition, Size, SizeReservation};
use crate::fields::{check_description, set};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;
use crate::tenancy::entity::Project;

fn check_reservation(tx: &Tx<'_>, reservation: &SizeReservation) -> CheckResult {
    crate::fields::check_name(&reservation.name)?;
    check_description(&reservation.description)?;
    if reservation.amount == 0 {
        return Err(Error::invalid("amount", "must be greater than 0"));
    }
    if reservation.partitions.is_empty() {
        return Err(Error::invalid("partitions", "must name at least one"));
    }
    tx.tables().require::<Project>(&reservation.project)?;
    tx.tables().require::<Size>(&reservation.size)?;
    let known = |id: &PartitionId| tx.tables().require::<Partition>(id).map(drop);
    reservation.partitions.iter().try_for_each(known)
}

pub(crate) fn create_reservation(tx: &mut Tx<'_>, op: &CreateSizeReservation) -> ApplyResult {
    check_reservation(tx, &op.0)?;
    tx.create(op.0.clone()).map(Reply::SizeReservation)
}

pub(crate) fn update_reservation(tx: &mut Tx<'_>, op: &UpdateSizeReservation) -> ApplyResult {
    let mut reservation: SizeReservation = tx.require(&op.id)?;
    op.lock
        .check("size-reservation", &op.id.to_string(), &reservation.meta)?;
    set(&mut reservation.name, op.name.as_ref());
    set(&mut reservation.description, op.description.as_ref());
    set(&mut reservation.partitions, op.partitions.as_ref());
    set(&mut reservation.amount, op.amount.as_ref());
    if let Some(labels) = &op.labels {
        labels.apply(&mut reservation.meta.labels)?;
    }
    check_reservation(tx, &reservation)?;
    Ok(Reply::SizeReservation(tx.update(reservation)))
}

pub(crate) fn delete_reservation(tx: &mut Tx<'_>, op: &DeleteSizeReservation) -> ApplyResult {
    let old = tx.delete::<SizeReservation>(&op.0);
    old.map(Reply::SizeReservation)
        .ok_or_else(|| Error::not_found("size-reservation", op.0))
}
