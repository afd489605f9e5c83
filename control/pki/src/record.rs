//! What the state knows about identities.

use control_state::{Certificate, Identity, JoinTicket, Machine, Tables};
use proto_identity::{PeerIdentity, SpiffeId, Subject};
use proto_types::{AllocationId, MachineId, Timestamp};

use crate::judge::{Known, role_of};

/// The record of a certificate that is about to be handed out.
pub(crate) fn certificate(
    peer: &PeerIdentity,
    now: Timestamp,
    allocation: Option<AllocationId>,
) -> Certificate {
    Certificate {
        serial: peer.serial.clone(),
        identity: peer.id.to_string(),
        issued_at: now,
        not_after: Timestamp::from_ms(peer.not_after_ms),
        machine: peer.id.machine().map(MachineId::new),
        allocation,
        key: peer.fingerprint.parse().ok(),
        authority: 1,
        revoked_at: None,
        revoked_reason: String::new(),
    }
}

/// The ticket by which an agent with this key joined last.
pub(crate) fn ticket_of<'a>(
    tables: &'a Tables,
    id: &SpiffeId,
    fingerprint: &str,
) -> Option<&'a JoinTicket> {
    let Subject::Agent {
        partition,
        role,
        id,
    } = id.subject()
    else {
        return None;
    };
    tables
        .all::<JoinTicket>()
        .map(AsRef::as_ref)
        .filter(|t| t.agent == *id && t.partition.as_str() == partition && role_of(t) == *role)
        .filter(|t| {
            t.redeemed_key
                .as_ref()
                .is_some_and(|k| k.hex() == fingerprint)
        })
        .max_by_key(|t| t.redeemed_at)
}

/// Everything that is known about the bearer of a certificate, who asks for one of the key with
/// this fingerprint.
pub(crate) fn known<'a>(tables: &'a Tables, peer: &PeerIdentity, key: &str) -> Known<'a> {
    let machine = peer.id.machine().map(MachineId::new);
    Known {
        certificate: tables.get::<Certificate>(&peer.serial).map(AsRef::as_ref),
        identity: tables
            .get::<Identity>(&peer.id.to_string())
            .map(AsRef::as_ref),
        ticket: ticket_of(tables, &peer.id, key),
        machine: machine
            .and_then(|id| tables.get::<Machine>(&id))
            .map(AsRef::as_ref),
    }
}
