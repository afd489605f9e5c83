//! Identities: revocation, and rotation of their keys.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::identity::apply::certificate::revoke;
use crate::identity::command::{RevokeIdentity, RotateIdentity};
use crate::identity::entity::{BootTicket, Certificate, Identity, JoinTicket};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

/// Grace period of an identity's old key after the new one, milliseconds: calls in flight finish on
/// its session. Then its certificates are revoked.
const OLD_KEY_MS: u64 = 60_000;

/// Age of a new key up to which certificates of the old one are looked for, milliseconds: two
/// hours, longer than the life of a certificate.
const LOOK_BACK_MS: u64 = 2 * 3_600_000;

/// The part of a SPIFFE id behind the trust domain.
fn path(identity: &str) -> &str {
    let rest = identity.strip_prefix("spiffe://").unwrap_or(identity);
    rest.find('/').map_or("", |at| &rest[at..])
}

pub(crate) fn is_ticket_of(ticket: &JoinTicket, identity: &str) -> bool {
    let JoinTicket {
        partition, agent, ..
    } = ticket;
    path(identity) == format!("/partition/{partition}/{}/{agent}", ticket.kind.as_str())
}

pub(crate) fn gone(identity: &str) -> Error {
    Error::new(
        ErrorCode::CertificateRevoked,
        format!("identity \"{identity}\" is revoked"),
    )
    .object("identity", identity)
}

fn serials_of(tables: &Tables, identity: &str) -> Vec<String> {
    tables
        .all::<Certificate>()
        .filter(|certificate| certificate.identity == identity)
        .map(|certificate| certificate.serial.clone())
        .collect()
}

pub(crate) fn revoke_identity(tx: &mut Tx<'_>, op: &RevokeIdentity) -> ApplyResult {
    let mut identity: Identity = tx.require(&op.identity)?;
    // The tickets as well: with one of them the agent would join again.
    let tickets: Vec<JoinTicket> = tx
        .tables()
        .all::<JoinTicket>()
        .filter(|ticket| ticket.revoked_at.is_none() && is_ticket_of(ticket, &op.identity))
        .map(|ticket| JoinTicket::clone(ticket))
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
        .filter(|ticket| path(&op.identity) == format!("/machine/{}", ticket.machine))
        .map(|ticket| ticket.id)
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

pub(crate) fn rotate_identity(tx: &mut Tx<'_>, op: &RotateIdentity) -> ApplyResult {
    let mut identity: Identity = tx.require(&op.identity)?;
    check_live(&identity, tx.now)?;
    identity.rotate_since = identity.rotate_since.or(Some(tx.now));
    Ok(Reply::Identity(tx.save(identity)))
}

fn check_live(identity: &Identity, now: Timestamp) -> CheckResult {
    if identity.revoked_at.is_some() {
        return Err(gone(&identity.id));
    }
    if !identity.is_live(now) {
        let text = format!("identity \"{}\" has no certificate now", identity.id);
        return Err(Error::new(ErrorCode::IdentityAway, text).object("identity", &identity.id));
    }
    Ok(())
}

/// Revokes the certificates of keys that were replaced.
pub(crate) fn finish_rotations(tx: &mut Tx<'_>) {
    let old = of_replaced_keys(tx.tables(), tx.now);
    revoke(tx, old, "its key was replaced");
}

/// Serial numbers of valid certificates whose key was replaced longer than [`OLD_KEY_MS`] ago.
pub(crate) fn of_replaced_keys(tables: &Tables, now: Timestamp) -> Vec<String> {
    // A key that changed earlier has no valid certificates of its predecessor left.
    let recent: BTreeMap<&str, &Identity> = tables
        .all::<Identity>()
        .filter(|identity| {
            identity.key_since > identity.joined_at
                && now.since_ms(identity.key_since) < LOOK_BACK_MS
        })
        .map(|identity| (identity.id.as_str(), identity.as_ref()))
        .collect();
    if recent.is_empty() {
        return Vec::new();
    }
    let replaced = |certificate: &Certificate| {
        let (None, Some(key)) = (certificate.revoked_at, &certificate.key) else {
            return false;
        };
        let identity = recent.get(certificate.identity.as_str());
        identity.is_some_and(|identity| {
            identity.key != *key && now.since_ms(identity.key_since) >= OLD_KEY_MS
        })
    };
    tables
        .all::<Certificate>()
        .filter(|certificate| replaced(certificate))
        .map(|certificate| certificate.serial.clone())
        .collect()
}
