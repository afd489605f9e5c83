//! Decisions on tickets and certificates, as pure functions. The state decides once more when
//! the command is applied; this comes first so that strangers cannot make control write.

use control_state::{BootTicket, Certificate, ErrorCode, JoinTicket, Machine, StateError};
use proto_identity::{AgentRole, PeerIdentity, Subject};
use proto_types::{Digest, MacAddr, MachineId, Timestamp};

/// An agent that was away for longer than this joins anew, milliseconds.
pub const RESUME_MAX: u64 = 30 * 24 * 3600 * 1000;
/// For this long after a join the same key gets a certificate for the same ticket again: the
/// answer may have been lost. Milliseconds.
pub const REPEAT_MAX: u64 = 120_000;

fn refuse(code: ErrorCode) -> StateError {
    StateError::new(code, code.title())
}

/// What to do with a join ticket that somebody shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// Redeem it.
    Redeem,
    /// It was redeemed by this key a moment ago: issue again.
    Repeat,
}

/// Whether `secret` and `key` may redeem this join ticket now.
pub(crate) fn join(
    ticket: Option<&JoinTicket>,
    secret: &Digest,
    key: &Digest,
    now: Timestamp,
) -> Result<Join, StateError> {
    let ticket = ticket.filter(|t| t.secret.same_as(secret));
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
            return Ok(Join::Repeat);
        }
        return Err(refuse(ErrorCode::TicketUsed));
    }
    if now > ticket.expires_at {
        return Err(refuse(ErrorCode::TicketExpired));
    }
    Ok(Join::Redeem)
}

/// Whether `secret` and this machine may redeem this boot ticket now.
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

/// What the state knows about an identity that asks again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    /// The record of the certificate that it shows, while it lasts.
    pub certificate: Option<&'a Certificate>,
    /// Of agents: the ticket that this identity and key joined by.
    pub ticket: Option<&'a JoinTicket>,
    /// Of machines: the machine.
    pub machine: Option<&'a Machine>,
}

/// Whether the identity stands as it did when the certificate was issued. For renewal over a
/// session, where the certificate itself is still valid.
pub(crate) fn stands(peer: &PeerIdentity, known: Known<'_>) -> Result<(), StateError> {
    let gone = || refuse(ErrorCode::CertificateRevoked);
    if known.certificate.is_some_and(|c| c.revoked_at.is_some()) {
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
            let issued = Timestamp::from_ms(peer.not_before_ms.saturating_add(BACKDATE_MS));
            // A key of an earlier allocation of the same project is not good for this one.
            let current = allocation.project.to_string() == *project
                && issued.ms().saturating_add(999) >= allocation.created_at.ms();
            if current { Ok(()) } else { Err(gone()) }
        }
        Subject::Node { .. } => Err(gone()),
    }
}

const BACKDATE_MS: u64 = 300_000;

/// Whether an identity whose certificate has ended gets a new one without a ticket. An agent
/// needs the ticket that it joined by to be on record, unrevoked and of the same key; hammer
/// never resumes: it boots anew.
pub(crate) fn may_resume(
    peer: &PeerIdentity,
    known: Known<'_>,
    now: Timestamp,
) -> Result<(), StateError> {
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
            let same_key = ticket
                .redeemed_key
                .as_ref()
                .is_some_and(|k| k.hex() == peer.fingerprint);
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
        Subject::Machine { .. } | Subject::Node { .. } => {
            Err(refuse(ErrorCode::CertificateRevoked))
        }
    }
}

/// The role that a ticket is for.
pub(crate) fn role_of(ticket: &JoinTicket) -> AgentRole {
    match ticket.kind {
        control_state::AgentKind::Core => AgentRole::Core,
        control_state::AgentKind::Bmc => AgentRole::Bmc,
        control_state::AgentKind::Pixie => AgentRole::Pixie,
    }
}
