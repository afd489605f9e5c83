//! Size reservations and image constraints of sizes.

use control_gate::refusal::invalid;
use control_state as state;
use proto_public::api::v2;
use proto_types::ReservationId;
use tonic::Status;
use uuid::Uuid;

use super::{has_labels, is, is_opt, meta, new_meta, parse, parse_all};

/// A reservation for the wire.
pub fn reservation(it: &state::SizeReservation) -> v2::SizeReservation {
    v2::SizeReservation {
        id: it.id.to_string(),
        meta: meta(&it.meta),
        name: it.name.clone(),
        description: it.description.clone(),
        project: it.project.to_string(),
        size: it.size.to_string(),
        partitions: it.partitions.iter().map(ToString::to_string).collect(),
        amount: i32::try_from(it.amount).unwrap_or(i32::MAX),
    }
}

/// A reservation from the wire; one without an id gets one.
///
/// # Errors
/// `invalid_argument`.
pub fn from_reservation(it: v2::SizeReservation) -> Result<state::SizeReservation, Status> {
    let id = match it.id.as_str() {
        "" => ReservationId::new(Uuid::now_v7()),
        given => parse("size_reservation.id", given)?,
    };
    Ok(state::SizeReservation {
        id,
        meta: new_meta(it.meta),
        name: it.name,
        description: it.description,
        project: parse("size_reservation.project", &it.project)?,
        size: parse("size_reservation.size", &it.size)?,
        partitions: parse_all("size_reservation.partitions", &it.partitions)?,
        amount: from_amount(it.amount)?,
    })
}

/// The number of machines of a reservation.
///
/// # Errors
/// `invalid_argument` for a negative number.
pub fn from_amount(amount: i32) -> Result<u32, Status> {
    u32::try_from(amount).map_err(|_| invalid("amount", "must be greater than 0"))
}

/// `true` if the query matches this reservation.
pub fn reservation_matches(
    it: &state::SizeReservation,
    query: Option<&v2::SizeReservationQuery>,
) -> bool {
    let Some(query) = query else { return true };
    let wanted = query.partition.as_ref();
    is_opt(query.id.as_ref(), Some(&it.id))
        && is(query.name.as_ref(), &it.name)
        && is(query.description.as_ref(), &it.description)
        && is_opt(query.size.as_ref(), Some(&it.size))
        && is_opt(query.project.as_ref(), Some(&it.project))
        && wanted.is_none_or(|wanted| it.partitions.iter().any(|id| id.as_str() == wanted))
        && has_labels(&it.meta.labels, query.labels.as_ref())
}

/// Image constraints of a size for the wire.
pub fn image_constraint(it: &state::SizeImageConstraint) -> v2::SizeImageConstraint {
    let one = |constraint: &state::ImageConstraint| v2::ImageConstraint {
        image: constraint.image.clone(),
        semver_match: constraint.semver_match.clone(),
    };
    v2::SizeImageConstraint {
        size: it.size.to_string(),
        image_constraints: it.image_constraints.iter().map(one).collect(),
        meta: meta(&it.meta),
        name: it.name.clone(),
        description: it.description.clone(),
    }
}

/// Versions of images from the wire.
pub fn from_image_constraints(all: Vec<v2::ImageConstraint>) -> Vec<state::ImageConstraint> {
    let one = |constraint: v2::ImageConstraint| state::ImageConstraint {
        image: constraint.image,
        semver_match: constraint.semver_match,
    };
    all.into_iter().map(one).collect()
}

/// `true` if the query matches this constraint.
pub fn image_constraint_matches(
    it: &state::SizeImageConstraint,
    query: Option<&v2::SizeImageConstraintQuery>,
) -> bool {
    let Some(query) = query else { return true };
    is_opt(query.size.as_ref(), Some(&it.size))
        && is_opt(query.name.as_ref(), it.name.as_ref())
        && is_opt(query.description.as_ref(), it.description.as_ref())
}
