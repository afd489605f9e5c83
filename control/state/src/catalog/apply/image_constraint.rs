//! Images that a size allows.

use proto_errors::Error;
use proto_types::SizeId;

use crate::catalog::command::{
    CreateSizeImageConstraint, DeleteSizeImageConstraint, UpdateSizeImageConstraint,
};
use crate::catalog::entity::{ImageConstraint, Size, SizeImageConstraint};
use crate::catalog::read::Requirement;
use crate::fields::set;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

fn check_image_constraints(tx: &Tx<'_>, size: &SizeId, all: &[ImageConstraint]) -> CheckResult {
    tx.tables().require::<Size>(size)?;
    all.iter()
        .try_for_each(|constraint| Requirement::parse(&constraint.semver_match).map(drop))
}

pub(crate) fn create_image_constraint(
    tx: &mut Tx<'_>,
    op: &CreateSizeImageConstraint,
) -> ApplyResult {
    check_image_constraints(tx, &op.0.size, &op.0.image_constraints)?;
    tx.create(op.0.clone()).map(Reply::SizeImageConstraint)
}

pub(crate) fn update_image_constraint(
    tx: &mut Tx<'_>,
    op: &UpdateSizeImageConstraint,
) -> ApplyResult {
    let mut constraint: SizeImageConstraint = tx.require(&op.size)?;
    op.lock
        .check("size-image-constraint", op.size.as_str(), &constraint.meta)?;
    constraint.name = op.name.clone().or(constraint.name);
    constraint.description = op.description.clone().or(constraint.description);
    set(
        &mut constraint.image_constraints,
        op.image_constraints.as_ref(),
    );
    check_image_constraints(tx, &op.size, &constraint.image_constraints)?;
    Ok(Reply::SizeImageConstraint(tx.update(constraint)))
}

pub(crate) fn delete_image_constraint(
    tx: &mut Tx<'_>,
    op: &DeleteSizeImageConstraint,
) -> ApplyResult {
    let old = tx.delete::<SizeImageConstraint>(&op.0);
    old.map(Reply::SizeImageConstraint)
        .ok_or_else(|| Error::not_found("size-image-constraint", &op.0))
}
