//! Sizes. After a change `machine::apply::sizing` matches machines again.

use proto_errors::{Error, ErrorCode};
use proto_types::SizeId;

use crate::catalog::command::{CreateSize, DeleteSize, UpdateSize};
use crate::catalog::entity::{
    Layout, Size, SizeConstraint, SizeConstraintType, SizeImageConstraint, SizeReservation,
};
use crate::catalog::read::overlap;
use crate::fields::{check_description, in_use, set};
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

fn check_size(tx: &Tx<'_>, size: &Size) -> CheckResult {
    if let Some(name) = &size.name {
        crate::fields::check_name(name)?;
    }
    check_description(size.description.as_deref().unwrap_or_default())?;
    for constraint in &size.constraints {
        check_constraint(constraint)?;
    }
    let clash = tx
        .tables()
        .all::<Size>()
        .find(|other| other.id != size.id && overlap(&other.constraints, &size.constraints));
    match clash {
        Some(other) if !size.constraints.is_empty() => Err(Error::new(
            ErrorCode::SizesOverlap,
            format!("size \"{}\" overlaps size \"{}\"", size.id, other.id),
        )
        .object("size", &size.id)),
        _ => Ok(()),
    }
}

fn check_constraint(constraint: &SizeConstraint) -> CheckResult {
    if constraint.min > constraint.max {
        return Err(Error::invalid(
            "constraints.min",
            "must not be greater than max",
        ));
    }
    let named = constraint
        .identifier
        .as_deref()
        .is_some_and(|text| !text.is_empty());
    if named && constraint.kind == SizeConstraintType::Memory {
        return Err(Error::invalid(
            "constraints.identifier",
            "does not belong to memory",
        ));
    }
    Ok(())
}

pub(crate) fn create_size(tx: &mut Tx<'_>, op: &CreateSize) -> ApplyResult {
    check_size(tx, &op.0)?;
    tx.create(op.0.clone()).map(Reply::Size)
}

pub(crate) fn update_size(tx: &mut Tx<'_>, op: &UpdateSize) -> ApplyResult {
    let mut size: Size = tx.require(&op.id)?;
    op.lock.check("size", op.id.as_str(), &size.meta)?;
    size.name = op.name.clone().or(size.name);
    size.description = op.description.clone().or(size.description);
    set(&mut size.constraints, op.constraints.as_ref());
    if let Some(labels) = &op.labels {
        labels.apply(&mut size.meta.labels)?;
    }
    check_size(tx, &size)?;
    Ok(Reply::Size(tx.update(size)))
}

pub(crate) fn delete_size(tx: &mut Tx<'_>, op: &DeleteSize) -> ApplyResult {
    let size = tx.tables().require::<Size>(&op.0)?.clone();
    let tables = tx.tables();
    if let Some(machine) = references::machine_of_size(tables, &op.0) {
        return Err(in_use(
            "size",
            op.0.as_str(),
            "machine",
            &machine.to_string(),
        ));
    }
    let reserved = tables
        .all::<SizeReservation>()
        .find(|reservation| reservation.size == op.0);
    if let Some(reservation) = reserved {
        return Err(in_use(
            "size",
            op.0.as_str(),
            "size reservation",
            &reservation.id.to_string(),
        ));
    }
    check_size_unnamed(tables, &op.0)?;
    tx.delete::<Size>(&op.0);
    Ok(Reply::Size(size))
}

/// Refuses to delete a size that a layout or a size-image constraint names: neither would be of
/// any use, and a layout could not be changed any more.
fn check_size_unnamed(tables: &Tables, id: &SizeId) -> CheckResult {
    let mut layouts = tables.all::<Layout>();
    if let Some(layout) = layouts.find(|layout| layout.constraints.sizes.contains(id)) {
        let by = layout.id.as_str();
        return Err(in_use("size", id.as_str(), "filesystem layout", by));
    }
    if tables.get::<SizeImageConstraint>(id).is_some() {
        let by = id.as_str();
        return Err(in_use("size", id.as_str(), "size-image constraint", by));
    }
    Ok(())
}
