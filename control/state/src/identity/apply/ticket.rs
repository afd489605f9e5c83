//! Checks that all kinds of tickets share when they are redeemed.

use std::fmt::Display;

use proto_errors::{Error, ErrorCode};
use proto_types::{Digest, Timestamp};

use crate::reply::CheckResult;

/// The refusal of a ticket.
pub(crate) fn refuse(code: ErrorCode, kind: &str, id: impl Display, why: &str) -> Error {
    Error::new(code, format!("{kind} \"{id}\" {why}")).object(kind, id)
}

/// A stored ticket and the secret that a caller shows to redeem it.
pub(crate) struct TicketCheck<'a, Id> {
    /// The ticket's kind, as error messages name it.
    pub(crate) kind: &'a str,
    pub(crate) id: Id,
    /// SHA-256 of the ticket's secret.
    pub(crate) secret: &'a Digest,
    /// SHA-256 of the secret that the caller shows.
    pub(crate) shown: &'a Digest,
    /// Time of the ticket's use. `None` means that it is unused.
    pub(crate) redeemed_at: Option<Timestamp>,
    /// End of the ticket's validity.
    pub(crate) expires_at: Timestamp,
}

/// Checks secret, use and expiry of a ticket.
///
/// # Errors
/// `TicketUnknown` if the secret is wrong, `TicketUsed`, `TicketExpired`.
pub(crate) fn check_ticket<Id: Display + Copy>(
    ticket: &TicketCheck<'_, Id>,
    now: Timestamp,
) -> CheckResult {
    let (kind, id) = (ticket.kind, ticket.id);
    // The secret comes first: a caller without it must not be able to tell a used ticket from an
    // expired or an unknown one.
    if !ticket.secret.same_as(ticket.shown) {
        return Err(unknown(kind, id));
    }
    if ticket.redeemed_at.is_some() {
        return Err(refuse(ErrorCode::TicketUsed, kind, id, "was used before"));
    }
    if now >= ticket.expires_at {
        return Err(refuse(ErrorCode::TicketExpired, kind, id, "has ended"));
    }
    Ok(())
}

/// The refusal of an unknown ticket and of a wrong secret: the same, so that ids cannot be probed.
pub(crate) fn unknown(kind: &str, id: impl Display) -> Error {
    refuse(
        ErrorCode::TicketUnknown,
        kind,
        id,
        "is unknown or its secret is wrong",
    )
}
