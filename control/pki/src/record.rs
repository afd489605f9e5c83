//! Records of the state about identities.

use control_state::{Certificate, Identity, JoinTicket, Machine, Tables};
use proto_identity::{PeerIdentity, SpiffeId, Subject};
use proto_types::{AllocationId, MachineId, Timestamp};

use crate::judge::{IdentityFacts, role_of};

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

/// The ticket with which an agent joined last with this key.
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
        .filter(|ticket| {
            ticket.agent == *id
                && ticket.partition.as_str() == partition
                && role_of(ticket) == *role
        })
        .filter(|t| {
            t.redeemed_key
                .as_ref()
                .is_some_and(|k| k.hex() == fingerprint)
        })
        .max_by_key(|t| t.redeemed_at)
}

/// Collects the records about the holder of a certificate that asks for one for the key with this
/// fingerprint.
pub(crate) fn known<'a>(tables: &'a Tables, peer: &PeerIdentity, key: &str) -> IdentityFacts<'a> {
    let machine = peer.id.machine().map(MachineId::new);
    IdentityFacts {
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
