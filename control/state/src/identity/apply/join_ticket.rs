//! Tickets by which agents join.

use proto_errors::{Error, ErrorCode};
use proto_types::{Digest, PartitionId, SwitchId};

use crate::catalog::entity::Partition;
use crate::identity::apply::identity::is_ticket_of;
use crate::identity::apply::ticket::{TicketCheck, check_ticket, refuse, unknown};
use crate::identity::command::{CreateJoinTicket, RedeemJoinTicket, RevokeJoinTicket};
use crate::identity::entity::{AgentKind, Identity, JoinTicket};
use crate::levels::feature_level;
use crate::op::REVOKED_AGENTS;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::switch::entity::Switch;
use crate::tables::Tx;

/// Longest life of a join ticket, milliseconds: a day.
const JOIN_LIFE_MAX_MS: u64 = 24 * 3_600_000;

pub(crate) fn create_join_ticket(tx: &mut Tx<'_>, op: &CreateJoinTicket) -> ApplyResult {
    tx.tables().require::<Partition>(&op.partition)?;
    let life = op.expires_at.since_ms(tx.now);
    if life == 0 || life > JOIN_LIFE_MAX_MS {
        return Err(Error::invalid("minutes", "must be in 1..=1440"));
    }
    let is_name = proto_types::is_name(&op.agent) && proto_types::is_hostname(&op.agent);
    if !is_name {
        let what = if op.kind == AgentKind::Core {
            "a switch's host name"
        } else {
            "a host name"
        };
        return Err(Error::invalid(
            "id",
            format!("must be {what} of 2 to 128 characters"),
        ));
    }
    check_switch(tx, op.kind, &op.partition, &op.agent)?;
    if tx.get::<JoinTicket>(&op.id).is_some() {
        return Err(Error::already_exists("join-ticket", op.id));
    }
    let ticket = JoinTicket {
        id: op.id,
        kind: op.kind,
        partition: op.partition.clone(),
        agent: op.agent.clone(),
        secret: op.secret.clone(),
        key: op.key.clone(),
        tpm: op.tpm.clone(),
        reenrols: op.reenrols,
        created_by: tx.actor.to_owned(),
        created_at: tx.now,
        expires_at: op.expires_at,
        redeemed_at: None,
        redeemed_key: None,
        revoked_at: None,
    };
    check_revoked(tx, &ticket)?;
    Ok(Reply::JoinTicket(tx.save(ticket)))
}

/// Refuses a core agent with the name of a switch in another partition: names of switches are unique
/// over partitions, so that it would act for that switch.
fn check_switch(tx: &Tx<'_>, kind: AgentKind, partition: &PartitionId, agent: &str) -> CheckResult {
    let id: Option<SwitchId> = agent.parse().ok().filter(|_| kind == AgentKind::Core);
    let known = id.and_then(|id| tx.get::<Switch>(&id));
    let Some(switch) = known.filter(|switch| switch.partition != *partition) else {
        return Ok(());
    };
    let text = format!(
        "switch \"{agent}\" is in partition \"{}\" already",
        switch.partition
    );
    let error = Error::new(ErrorCode::AlreadyExists, text).object("switch", agent);
    Err(error.hint("delete it there, or give this one another name"))
}

/// Refuses a ticket of an agent whose identity was revoked, unless its maker said that the agent may
/// join again: otherwise each automatic order of a ticket would undo the revocation.
fn check_revoked(tx: &Tx<'_>, ticket: &JoinTicket) -> CheckResult {
    if ticket.reenrols || feature_level(tx.tables()) < REVOKED_AGENTS {
        return Ok(());
    }
    let mut identities = tx.tables().all::<Identity>();
    let revoked = identities
        .find(|identity| identity.revoked_at.is_some() && is_ticket_of(ticket, &identity.id));
    let Some(identity) = revoked else {
        return Ok(());
    };
    let text = format!("the identity \"{}\" was revoked", identity.id);
    Err(Error::new(ErrorCode::IdentityRevoked, text).object("identity", &identity.id))
}

pub(crate) fn redeem_join_ticket(tx: &mut Tx<'_>, op: &RedeemJoinTicket) -> ApplyResult {
    const KIND: &str = "join-ticket";
    let ticket = tx
        .get::<JoinTicket>(&op.id)
        .ok_or_else(|| unknown(KIND, op.id))?;
    let mut ticket = JoinTicket::clone(ticket);
    // The secret is checked before all else: without it, a caller learns nothing about the ticket.
    let check = TicketCheck {
        kind: KIND,
        id: op.id,
        secret: &ticket.secret,
        shown: &op.secret,
        redeemed_at: ticket.redeemed_at,
        expires_at: ticket.expires_at,
    };
    check_ticket(&check, tx.now)?;
    if ticket.revoked_at.is_some() {
        return Err(refuse(ErrorCode::TicketRevoked, KIND, op.id, "was revoked"));
    }
    if ticket.key.as_ref().is_some_and(|key| !key.same_as(&op.key)) {
        return Err(refuse(
            ErrorCode::TicketForeign,
            KIND,
            op.id,
            "is bound to another key",
        ));
    }
    let is_at_tpm = |wanted: &Digest| op.tpm.as_ref().is_some_and(|tpm| tpm.same_as(wanted));
    if !ticket.tpm.as_ref().is_none_or(is_at_tpm) {
        return Err(refuse(
            ErrorCode::TpmUnproved,
            KIND,
            op.id,
            "is bound to a TPM, which did not answer",
        ));
    }
    check_switch(tx, ticket.kind, &ticket.partition, &ticket.agent)?;
    // A control node of an earlier program may have made it after the revocation.
    check_revoked(tx, &ticket)?;
    ticket.redeemed_at = Some(tx.now);
    ticket.redeemed_key = Some(op.key.clone());
    Ok(Reply::JoinTicket(tx.save(ticket)))
}

pub(crate) fn revoke_join_ticket(tx: &mut Tx<'_>, op: &RevokeJoinTicket) -> ApplyResult {
    let mut ticket: JoinTicket = tx.require(&op.id)?;
    ticket.revoked_at = ticket.revoked_at.or(Some(tx.now));
    Ok(Reply::JoinTicket(tx.save(ticket)))
}
