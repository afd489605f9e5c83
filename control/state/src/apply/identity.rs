//! Identities: what was issued to whom, revoked, or is to be made anew.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_types::{Digest, Timestamp};

use super::agents::{check_allocation, revoke};
use crate::command::{Cause, IssueCertificate, RevokeIdentity, RotateIdentity};
use crate::entities::{BootTicket, Certificate, Identity, JoinTicket, JoinedBy};
use crate::reply::Reply;
use crate::tables::{Tables, Tx};

/// So long after an identity has a new key the certificates of its old one are revoked,
/// milliseconds: calls in flight end on the session of the old one.
const OLD_KEY_MS: u64 = 60_000;

/// Longer than a certificate lives, milliseconds.
const LOOK_BACK_MS: u64 = 2 * 3_600_000;

type Result = std::result::Result<Reply, Error>;
type Check = std::result::Result<(), Error>;

/// The part of a SPIFFE id behind the trust domain.
fn path(identity: &str) -> &str {
    let rest = identity.strip_prefix("spiffe://").unwrap_or(identity);
    rest.find('/').map_or("", |at| &rest[at..])
}

fn is_ticket_of(ticket: &JoinTicket, identity: &str) -> bool {
    let JoinTicket {
        partition, agent, ..
    } = ticket;
    path(identity) == format!("/partition/{partition}/{}/{agent}", ticket.kind.as_str())
}

fn gone(identity: &str) -> Error {
    Error::new(
        ErrorCode::CertificateRevoked,
        format!("identity \"{identity}\" is revoked"),
    )
    .object("identity", identity)
}

pub(super) fn issue_certificate(tx: &mut Tx<'_>, op: &IssueCertificate) -> Result {
    let certificate = &op.certificate;
    if tx.get::<Certificate>(&certificate.serial).is_some() {
        return Err(Error::already_exists("certificate", &certificate.serial));
    }
    check_allocation(tx, certificate)?;
    super::ca::check_in_force(tx, certificate)?;
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

/// Whoever joins begins anew, by a ticket that is still good for it: it may have been revoked
/// between its redemption and here.
fn joined(
    tx: &Tx<'_>,
    op: &IssueCertificate,
    key: &Digest,
    by: &JoinedBy,
    known: Option<&Identity>,
) -> std::result::Result<Identity, Error> {
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
    let again = known.filter(|it| it.joined_by == *by && it.revoked_at.is_none());
    Ok(again.map_or_else(|| fresh(tx.now, op, key, by.clone()), Identity::clone))
}

fn renewed(
    tx: &Tx<'_>,
    op: &IssueCertificate,
    key: &Digest,
    shown: &Digest,
    known: Option<&Identity>,
) -> std::result::Result<Identity, Error> {
    let id = &op.certificate.identity;
    let Some(known) = known else {
        // From before identities were recorded.
        let ticket = tx.tables().all::<JoinTicket>().find(|ticket| {
            let same = ticket
                .redeemed_key
                .as_ref()
                .is_some_and(|k| k.same_as(shown));
            same && is_ticket_of(ticket, id)
        });
        let by = ticket.map_or(JoinedBy::Unknown, |it| JoinedBy::JoinTicket(it.id));
        return Ok(fresh(tx.now, op, shown, by));
    };
    let is_ticket_revoked = match &known.joined_by {
        JoinedBy::JoinTicket(id) => {
            let ticket = tx.get::<JoinTicket>(id);
            ticket.is_some_and(|it| it.revoked_at.is_some())
        }
        _ => false,
    };
    if known.revoked_at.is_some() || is_ticket_revoked {
        return Err(gone(id));
    }
    // A key that was replaced gets nothing any more, but for whoever has the new one: the answer
    // to its first request may have been lost.
    if !known.key.same_as(shown) && !known.key.same_as(key) {
        let text = format!("identity \"{id}\" has another key by now");
        return Err(Error::new(ErrorCode::TicketForeign, text).object("identity", id));
    }
    // Whoever comes back proves that it has the key that is known; it is asked for another then.
    let is_renewal = matches!(op.cause, Cause::Renewal(_));
    if is_renewal && known.rotate_since.is_some() && known.key.same_as(key) {
        let text = format!("identity \"{id}\" is to have a new key");
        return Err(Error::new(ErrorCode::KeyNotNew, text).object("identity", id));
    }
    Ok(known.clone())
}

/// The ticket that it joined by is what lets it come back: with the new key from now on.
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

fn serials_of(tables: &Tables, identity: &str) -> Vec<String> {
    tables
        .all::<Certificate>()
        .filter(|it| it.identity == identity)
        .map(|it| it.serial.clone())
        .collect()
}

/// The record of an identity; of one from before there were such records, made of its newest
/// certificate.
fn find(tx: &Tx<'_>, id: &str) -> std::result::Result<Identity, Error> {
    if let Some(known) = tx.get::<Identity>(&id.to_owned()) {
        return Ok(Identity::clone(known));
    }
    let certificates = tx.tables().all::<Certificate>();
    let newest = certificates
        .filter(|it| it.identity == id)
        .max_by_key(|it| it.issued_at)
        .ok_or_else(|| Error::not_found("identity", id))?;
    let ticket = tx
        .tables()
        .all::<JoinTicket>()
        .filter(|it| is_ticket_of(it, id))
        .max_by_key(|it| it.redeemed_at);
    let key = newest.key.clone();
    let key = key.or_else(|| ticket.and_then(|it| it.redeemed_key.clone()));
    Ok(Identity {
        id: id.to_owned(),
        joined_by: ticket.map_or(JoinedBy::Unknown, |it| JoinedBy::JoinTicket(it.id)),
        joined_at: newest.issued_at,
        // It is revoked with the same command: its key is never asked for.
        key: key.unwrap_or_else(|| Digest::sha256([0; 32])),
        key_since: newest.issued_at,
        serial: newest.serial.clone(),
        issued_at: newest.issued_at,
        not_after: newest.not_after,
        authority: 1,
        rotate_since: None,
        revoked_at: None,
        revoked_reason: String::new(),
    })
}

pub(super) fn revoke_identity(tx: &mut Tx<'_>, op: &RevokeIdentity) -> Result {
    let mut identity = find(tx, &op.identity)?;
    let tickets: Vec<JoinTicket> = tx
        .tables()
        .all::<JoinTicket>()
        .filter(|it| it.revoked_at.is_none() && is_ticket_of(it, &op.identity))
        .map(|it| JoinTicket::clone(it))
        .collect();
    for ticket in tickets {
        tx.save(JoinTicket {
            revoked_at: Some(tx.now),
            ..ticket
        });
    }
    let boots: Vec<_> = tx
        .tables()
        .all::<BootTicket>()
        .filter(|it| path(&op.identity) == format!("/machine/{}", it.machine))
        .map(|it| it.id)
        .collect();
    for id in boots {
        tx.delete::<BootTicket>(&id);
    }
    let serials = serials_of(tx.tables(), &op.identity);
    revoke(tx, serials, &op.reason);
    if identity.revoked_at.is_none() {
        identity.revoked_at = Some(tx.now);
        identity.revoked_reason.clone_from(&op.reason);
    }
    identity.rotate_since = None;
    Ok(Reply::Identity(tx.save(identity)))
}

pub(super) fn rotate_identity(tx: &mut Tx<'_>, op: &RotateIdentity) -> Result {
    let mut identity: Identity = tx.require(&op.identity)?;
    check_live(&identity, tx.now)?;
    identity.rotate_since = identity.rotate_since.or(Some(tx.now));
    Ok(Reply::Identity(tx.save(identity)))
}

fn check_live(identity: &Identity, now: Timestamp) -> Check {
    if identity.revoked_at.is_some() {
        return Err(gone(&identity.id));
    }
    if !identity.is_live(now) {
        let text = format!("identity \"{}\" has no certificate now", identity.id);
        return Err(Error::new(ErrorCode::IdentityAway, text).object("identity", &identity.id));
    }
    Ok(())
}

/// Revokes what was issued to keys that were replaced.
pub(super) fn finish_rotations(tx: &mut Tx<'_>) {
    let old = of_replaced_keys(tx.tables(), tx.now);
    revoke(tx, old, "its key was replaced");
}

/// Serials of certificates that count although another key has taken the place of theirs.
pub(super) fn of_replaced_keys(tables: &Tables, now: Timestamp) -> Vec<String> {
    // Older changes of keys have no certificates left from before them.
    let recent: BTreeMap<&str, &Identity> = tables
        .all::<Identity>()
        .filter(|it| it.key_since > it.joined_at && now.since_ms(it.key_since) < LOOK_BACK_MS)
        .map(|it| (it.id.as_str(), it.as_ref()))
        .collect();
    if recent.is_empty() {
        return Vec::new();
    }
    let replaced = |it: &Certificate| {
        let (None, Some(key)) = (it.revoked_at, &it.key) else {
            return false;
        };
        let identity = recent.get(it.identity.as_str());
        identity.is_some_and(|identity| {
            identity.key != *key && now.since_ms(identity.key_since) >= OLD_KEY_MS
        })
    };
    tables
        .all::<Certificate>()
        .filter(|it| replaced(it))
        .map(|it| it.serial.clone())
        .collect()
}
