//! Images that a size allows.

use proto_errors::{Error, ErrorCode};
use proto_types::{ImageId, SizeId};

use crate::catalog::entity::{Image, SizeImageConstraint};
use crate::catalog::read::{Requirement, parse_image_id};
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Refuses an image that a size excludes; a size without a constraint allows every image.
pub(crate) fn check_image_constraint(tables: &Tables, size: &SizeId, image: &Image) -> CheckResult {
    let Some(constraint) = tables.get::<SizeImageConstraint>(size) else {
        return Ok(());
    };
    let (os, version) = parse_image_id(image.id.as_str())?;
    for allowed in constraint
        .image_constraints
        .iter()
        .filter(|constraint| constraint.image == os)
    {
        if !Requirement::parse(&allowed.semver_match)?.matches(version) {
            return Err(Error::new(
                ErrorCode::ImageExcluded,
                format!(
                    "size \"{size}\" wants {os} {}, not {}",
                    allowed.semver_match, image.id
                ),
            )
            .object("size", size));
        }
    }
    Ok(())
}

/// Refuses an image that the constraint of a size excludes (`SizeImageConstraintService.Try`). A
/// size without a constraint allows every image, but is not found here.
pub fn try_image(tables: &Tables, size: &SizeId, image: &ImageId) -> Result<(), Error> {
    tables.require::<SizeImageConstraint>(size)?;
    let image = tables.require::<Image>(image)?;
    check_image_constraint(tables, size, image)
}
