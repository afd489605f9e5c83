//! Decisions on tickets and certificates, as pure functions. The state decides again when the
//! command is applied. This check comes first, so that a stranger cannot make control write to the
//! log.

pub(crate) mod invitation;

use control_state::{
    BootTicket, Certificate, ErrorCode, Identity, JoinTicket, Machine, RESUME_MAX_MS, StateError,
};
use proto_identity::profile::BACKDATE;
use proto_identity::{AgentRole, PeerIdentity, Subject};
use proto_types::{Digest, MacAddr, MachineId, Timestamp};

/// Longest time after the end of its certificate in which an agent may resume, milliseconds. Beyond
/// it the agent needs a new ticket.
pub const RESUME_MAX: u64 = RESUME_MAX_MS;
/// Time after a join in which the same key may redeem the same ticket again, because the answer may
/// have been lost, milliseconds. Beyond it the ticket is used up.
pub const REPEAT_MAX: u64 = 120_000;

/// A refusal with the standard text of its code.
fn refuse(code: ErrorCode) -> StateError {
    StateError::new(code, code.title())
}

/// Verdict on a join ticket that is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinVerdict {
    /// Redeem it.
    Redeem,
    /// It was redeemed by this key within [`REPEAT_MAX`]: issue again.
    Repeat,
}

/// Checks that `secret` and `key` may redeem this join ticket now.
pub(crate) fn join(
    ticket: Option<&JoinTicket>,
    secret: &Digest,
    key: &Digest,
    now: Timestamp,
) -> Result<JoinVerdict, StateError> {
    let ticket = ticket.filter(|t| t.secret.same_as(secret));
    // A wrong secret gets the same answer as an unknown ticket, before any other check: the other
    // answers would tell a stranger that the id exists.
    let ticket = ticket.ok_or_else(|| refuse(ErrorCode::TicketUnknown))?;
    if ticket.revoked_at.is_some() {
        return Err(refuse(ErrorCode::TicketRevoked));
    }
    if ticket.key.as_ref().is_some_and(|bound| !bound.same_as(key)) {
        return Err(refuse(ErrorCode::TicketForeign));
    }
    if let Some(at) = ticket.redeemed_at {
        let same = ticket.redeemed_key.as_ref().is_some_and(|k| k.same_as(key));
        if same && now.since_ms(at) <= REPEAT_MAX {
            return Ok(JoinVerdict::Repeat);
        }
        return Err(refuse(ErrorCode::TicketUsed));
    }
    if now > ticket.expires_at {
        return Err(refuse(ErrorCode::TicketExpired));
    }
    Ok(JoinVerdict::Redeem)
}

/// Checks that `secret` and this machine may redeem this boot ticket now.
pub(crate) fn boot(
    ticket: Option<&BootTicket>,
    secret: &Digest,
    machine: MachineId,
    mac: MacAddr,
    now: Timestamp,
) -> Result<(), StateError> {
    let ticket = ticket.filter(|t| t.secret.same_as(secret));
    let ticket = ticket.ok_or_else(|| refuse(ErrorCode::TicketUnknown))?;
    if ticket.machine != machine || ticket.mac != mac {
        return Err(refuse(ErrorCode::TicketForeign));
    }
    if ticket.redeemed_at.is_some() {
        return Err(refuse(ErrorCode::TicketUsed));
    }
    if now > ticket.expires_at {
        return Err(refuse(ErrorCode::TicketExpired));
    }
    Ok(())
}

/// Records of the state about an identity that asks for a new certificate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityFacts<'a> {
    /// Record of the certificate that it presents. `None` once the record was removed.
    pub certificate: Option<&'a Certificate>,
    /// Record of the identity, which outlives that of the certificate.
    pub identity: Option<&'a Identity>,
    /// For agents: the ticket with which this identity joined with the requested key.
    pub ticket: Option<&'a JoinTicket>,
    /// For machines: the machine.
    pub machine: Option<&'a Machine>,
}

/// Checks that nothing was revoked or removed since the certificate was issued. Enough for a
/// renewal over a session, where the certificate itself is still valid.
pub(crate) fn stands(peer: &PeerIdentity, known: IdentityFacts<'_>) -> Result<(), StateError> {
    let gone = || refuse(ErrorCode::CertificateRevoked);
    let is_revoked = known.identity.is_some_and(|i| i.revoked_at.is_some());
    if is_revoked || known.certificate.is_some_and(|c| c.revoked_at.is_some()) {
        return Err(gone());
    }
    match peer.id.subject() {
        Subject::Agent { .. } => {
            let revoked = known.ticket.is_some_and(|t| t.revoked_at.is_some());
            if revoked { Err(gone()) } else { Ok(()) }
        }
        Subject::Machine { .. } => known.machine.map(drop).ok_or_else(gone),
        Subject::ProjectMachine { project, .. } => {
            let allocation = known
                .machine
                .and_then(|m| m.allocation.as_ref())
                .ok_or_else(gone)?;
            let backdate = u64::try_from(BACKDATE.as_millis()).unwrap_or(0);
            let issued = Timestamp::from_ms(peer.not_before_ms.saturating_add(backdate));
            // A certificate of an earlier allocation of the machine to the same project must not
            // work for this one: another user of the project may have its key. Certificates have
            // seconds, so the comparison allows one.
            let current = allocation.project.to_string() == *project
                && issued.ms().saturating_add(999) >= allocation.created_at.ms();
            if current { Ok(()) } else { Err(gone()) }
        }
        Subject::Node { .. } | Subject::Peer { .. } => Err(gone()),
    }
}

/// Checks that an identity whose certificate has expired may get a new one for the key with
/// fingerprint `key`, without a ticket. The ticket with which an agent joined must be on record,
/// unrevoked and of that key. hammer never resumes: it boots again.
pub(crate) fn may_resume(
    peer: &PeerIdentity,
    key: &str,
    known: IdentityFacts<'_>,
    now: Timestamp,
) -> Result<(), StateError> {
    // The key may have been rotated after the certificate that is presented: the answer with the
    // new certificate was lost.
    let current = known.identity.map(|identity| identity.key.hex());
    if current.as_deref().unwrap_or(&peer.fingerprint) != key {
        return Err(refuse(ErrorCode::TicketForeign));
    }
    let ended = Timestamp::from_ms(peer.not_after_ms);
    if now.since_ms(ended) > RESUME_MAX {
        return Err(refuse(ErrorCode::TicketExpired));
    }
    stands(peer, known)?;
    match peer.id.subject() {
        Subject::Agent {
            partition,
            role,
            id,
        } => {
            let ticket = known
                .ticket
                .ok_or_else(|| refuse(ErrorCode::CertificateRevoked))?;
            let same_key = ticket.redeemed_key.as_ref().is_some_and(|k| k.hex() == key);
            let same_name = ticket.partition.as_str() == partition
                && ticket.agent == *id
                && role_of(ticket) == *role;
            if same_key && same_name {
                Ok(())
            } else {
                Err(refuse(ErrorCode::TicketForeign))
            }
        }
        Subject::ProjectMachine { .. } => Ok(()),
        Subject::Machine { .. } | Subject::Node { .. } | Subject::Peer { .. } => {
            Err(refuse(ErrorCode::CertificateRevoked))
        }
    }
}

/// The role of the agent that a ticket is for.
pub(crate) fn role_of(ticket: &JoinTicket) -> AgentRole {
    match ticket.kind {
        control_state::AgentKind::Core => AgentRole::Core,
        control_state::AgentKind::Bmc => AgentRole::Bmc,
        control_state::AgentKind::Pixie => AgentRole::Pixie,
    }
}

#[cfg(test)]
mod tests;
