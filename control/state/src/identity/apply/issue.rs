//! Issue of certificates to identities: when they join, renew or resume.

use proto_errors::{Error, ErrorCode};
use proto_types::{Digest, Timestamp};

use crate::identity::apply::identity::{gone, is_ticket_of};
use crate::identity::command::{Cause, IssueCertificate};
use crate::identity::entity::{BootTicket, Certificate, Identity, JoinTicket, JoinedBy};
use crate::references::check_allocation;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

pub(crate) fn issue_certificate(tx: &mut Tx<'_>, op: &IssueCertificate) -> ApplyResult {
    let certificate = &op.certificate;
    if tx.get::<Certificate>(&certificate.serial).is_some() {
        return Err(Error::already_exists("certificate", &certificate.serial));
    }
    check_allocation(tx, certificate)?;
    crate::identity::apply::ca::check_in_force(tx, certificate)?;
    let key = certificate
        .key
        .clone()
        .ok_or_else(|| Error::invalid("certificate.key", "is missing"))?;
    let known = tx.get::<Identity>(&certificate.identity).cloned();
    let mut identity = match &op.cause {
        Cause::Join(by) => joined(tx, op, &key, by, known.as_deref())?,
        Cause::Renewal(shown) | Cause::Resume(shown) => {
            renewed(tx, op, &key, shown, known.as_deref())?
        }
    };
    if identity.key != key {
        take_key(tx, &identity, &key);
        identity.key = key;
        identity.key_since = tx.now;
        identity.rotate_since = None;
    }
    identity.serial.clone_from(&certificate.serial);
    identity.issued_at = certificate.issued_at;
    identity.not_after = certificate.not_after;
    identity.authority = op.certificate.authority;
    tx.save(certificate.clone());
    Ok(Reply::Identity(tx.save(identity)))
}

fn fresh(now: Timestamp, op: &IssueCertificate, key: &Digest, by: JoinedBy) -> Identity {
    Identity {
        id: op.certificate.identity.clone(),
        joined_by: by,
        joined_at: now,
        key: key.clone(),
        key_since: now,
        serial: String::new(),
        issued_at: now,
        not_after: now,
        authority: op.certificate.authority,
        rotate_since: None,
        revoked_at: None,
        revoked_reason: String::new(),
    }
}

/// The identity of an agent or a machine that joins. Its ticket is checked again: it may have been
/// revoked or deleted since its redemption.
fn joined(
    tx: &Tx<'_>,
    op: &IssueCertificate,
    key: &Digest,
    by: &JoinedBy,
    known: Option<&Identity>,
) -> Result<Identity, Error> {
    let holds = match by {
        JoinedBy::JoinTicket(id) => tx.get::<JoinTicket>(id).is_some_and(|ticket| {
            let same = ticket.redeemed_key.as_ref().is_some_and(|k| k.same_as(key));
            same && ticket.revoked_at.is_none() && is_ticket_of(ticket, &op.certificate.identity)
        }),
        JoinedBy::BootTicket(id) | JoinedBy::BmcNonce(id) => {
            tx.get::<BootTicket>(id).is_some_and(|ticket| {
                ticket.redeemed_at.is_some() && Some(ticket.machine) == op.certificate.machine
            })
        }
        JoinedBy::Allocation(id) => op.certificate.allocation == Some(*id),
        JoinedBy::Unknown => false,
    };
    if !holds {
        return Err(Error::new(
            ErrorCode::TicketRevoked,
            format!(
                "what \"{}\" joined by holds no more",
                op.certificate.identity
            ),
        ));
    }
    // A repeated join, whose first reply was lost, keeps the record.
    let again = known.filter(|identity| identity.joined_by == *by && identity.revoked_at.is_none());
    Ok(again.map_or_else(|| fresh(tx.now, op, key, by.clone()), Identity::clone))
}

fn renewed(
    tx: &Tx<'_>,
    op: &IssueCertificate,
    key: &Digest,
    shown: &Digest,
    known: Option<&Identity>,
) -> Result<Identity, Error> {
    let id = &op.certificate.identity;
    let Some(known) = known else {
        // The state was restored from a backup that is older than the identity. If it were refused,
        // every agent that joined after the backup would need a new ticket. The redeemed ticket, if
        // the backup has it, is recorded as the origin: its revocation ends the identity.
        let tickets = tx.tables().all::<JoinTicket>().filter(|ticket| {
            let same = ticket
                .redeemed_key
                .as_ref()
                .is_some_and(|k| k.same_as(shown));
            same && is_ticket_of(ticket, id)
        });
        // The newest, as in the judgement before the proposal: an operator may have let the agent in
        // again after a revocation. That judgement is repeated here, because the ticket may have been
        // revoked since.
        let ticket = tickets.max_by_key(|ticket| ticket.redeemed_at);
        if ticket.is_some_and(|ticket| ticket.revoked_at.is_some()) {
            return Err(gone(id));
        }
        let by = ticket.map_or(JoinedBy::Unknown, |ticket| JoinedBy::JoinTicket(ticket.id));
        return Ok(fresh(tx.now, op, shown, by));
    };
    let is_ticket_revoked = match &known.joined_by {
        JoinedBy::JoinTicket(id) => {
            let ticket = tx.get::<JoinTicket>(id);
            ticket.is_some_and(|ticket| ticket.revoked_at.is_some())
        }
        _ => false,
    };
    if known.revoked_at.is_some() || is_ticket_revoked {
        return Err(gone(id));
    }
    // A caller that shows a replaced key gets no certificate, unless it requests one for the key
    // that replaced it: the reply to the first request of the rotation may have been lost.
    if !known.key.same_as(shown) && !known.key.same_as(key) {
        let text = format!("identity \"{id}\" has another key by now");
        return Err(Error::new(ErrorCode::TicketForeign, text).object("identity", id));
    }
    // Only a renewal must bring a new key. An agent that resumes may keep its key: it has no session
    // in which control could ask for another one. `rotate_since` stays, so that its next renewal
    // must bring one.
    let is_renewal = matches!(op.cause, Cause::Renewal(_));
    if is_renewal && known.rotate_since.is_some() && known.key.same_as(key) {
        let text = format!("identity \"{id}\" is to have a new key");
        return Err(Error::new(ErrorCode::KeyNotNew, text).object("identity", id));
    }
    Ok(known.clone())
}

/// Binds the join ticket of an identity to its new key. An agent resumes only if a ticket on record
/// was redeemed with its key, also after a restore from a backup older than the identity.
fn take_key(tx: &mut Tx<'_>, identity: &Identity, key: &Digest) {
    if let JoinedBy::JoinTicket(id) = &identity.joined_by
        && let Some(ticket) = tx.get::<JoinTicket>(id).cloned()
    {
        tx.save(JoinTicket {
            redeemed_key: Some(key.clone()),
            ..JoinTicket::clone(&ticket)
        });
    }
}
