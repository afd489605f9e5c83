//! Checks that all kinds of tickets share when they are redeemed.

use proto_errors::{Error, ErrorCode};
use proto_types::{Digest, Timestamp};

use crate::reply::CheckResult;

/// The refusal of a ticket.
pub(crate) fn refuse(code: ErrorCode, kind: &str, id: impl std::fmt::Display, why: &str) -> Error {
    Error::new(code, format!("{kind} \"{id}\" {why}")).object(kind, id)
}

/// Checks secret, use and expiry of a ticket. The secret comes first: a caller without it cannot
/// tell a used ticket from an expired or an unknown one.
pub(crate) fn check_ticket(
    kind: &str,
    id: impl std::fmt::Display + Copy,
    secret: (&Digest, &Digest),
    redeemed_at: Option<Timestamp>,
    expires_at: Timestamp,
    now: Timestamp,
) -> CheckResult {
    if !secret.0.same_as(secret.1) {
        return Err(unknown(kind, id));
    }
    if redeemed_at.is_some() {
        return Err(refuse(ErrorCode::TicketUsed, kind, id, "was used before"));
    }
    if now >= expires_at {
        return Err(refuse(ErrorCode::TicketExpired, kind, id, "has ended"));
    }
    Ok(())
}

/// The refusal of an unknown ticket and of a wrong secret: the same, so that ids cannot be probed.
pub(crate) fn unknown(kind: &str, id: impl std::fmt::Display) -> Error {
    refuse(
        ErrorCode::TicketUnknown,
        kind,
        id,
        "is unknown or its secret is wrong",
    )
}
