//! Tickets, certificates and keys.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::{AllocationId, Digest, MachineId, PartitionId, SwitchId, Timestamp};

use super::{boots, nonce};
use crate::command::{
    CertificateChoice, CreateJoinTicket, IssueBootTicket, PutCa, PutSigningKey, RecordCertificate,
    RedeemBootTicket, RedeemJoinTicket, RevokeCertificates, RevokeJoinTicket,
};
use crate::entities::{
    AgentKind, BootTicket, CaRecord, Certificate, Identity, JoinTicket, Machine, Partition,
    SigningKey, Switch,
};
use crate::life::hammer_may_run;
use crate::reply::Reply;
use crate::tables::Tx;

/// Longest life of a join ticket, milliseconds: a day.
const JOIN_LIFE_MAX_MS: u64 = 24 * 3_600_000;
/// Longest life of a boot ticket, milliseconds.
const BOOT_LIFE_MAX_MS: u64 = 15 * 60_000;

type Result = std::result::Result<Reply, Error>;
type Check = std::result::Result<(), Error>;

pub(super) fn create_join_ticket(tx: &mut Tx<'_>, op: &CreateJoinTicket) -> Result {
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
        created_by: tx.actor.to_owned(),
        created_at: tx.now,
        expires_at: op.expires_at,
        redeemed_at: None,
        redeemed_key: None,
        revoked_at: None,
    };
    Ok(Reply::JoinTicket(tx.save(ticket)))
}

/// The names of switches are unique over partitions, so that an agent of another partition would
/// speak for a switch that is not its own.
fn check_switch(tx: &Tx<'_>, kind: AgentKind, partition: &PartitionId, agent: &str) -> Check {
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

fn refuse(code: ErrorCode, kind: &str, id: impl std::fmt::Display, why: &str) -> Error {
    Error::new(code, format!("{kind} \"{id}\" {why}")).object(kind, id)
}

/// The order of these checks is what an attacker learns: nothing without the secret.
fn check_ticket(
    kind: &str,
    id: impl std::fmt::Display + Copy,
    secret: (&Digest, &Digest),
    redeemed_at: Option<Timestamp>,
    expires_at: Timestamp,
    now: Timestamp,
) -> Check {
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

fn unknown(kind: &str, id: impl std::fmt::Display) -> Error {
    refuse(
        ErrorCode::TicketUnknown,
        kind,
        id,
        "is unknown or its secret is wrong",
    )
}

pub(super) fn redeem_join_ticket(tx: &mut Tx<'_>, op: &RedeemJoinTicket) -> Result {
    const KIND: &str = "join-ticket";
    let ticket = tx
        .get::<JoinTicket>(&op.id)
        .ok_or_else(|| unknown(KIND, op.id))?;
    let mut ticket = JoinTicket::clone(ticket);
    let secrets = (&ticket.secret, &op.secret);
    check_ticket(
        KIND,
        op.id,
        secrets,
        ticket.redeemed_at,
        ticket.expires_at,
        tx.now,
    )?;
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
    let is_at_tpm = |wanted: &Digest| op.tpm.as_ref().is_some_and(|it| it.same_as(wanted));
    if !ticket.tpm.as_ref().is_none_or(is_at_tpm) {
        return Err(refuse(
            ErrorCode::TpmUnproved,
            KIND,
            op.id,
            "is bound to a TPM, which did not answer",
        ));
    }
    check_switch(tx, ticket.kind, &ticket.partition, &ticket.agent)?;
    ticket.redeemed_at = Some(tx.now);
    ticket.redeemed_key = Some(op.key.clone());
    Ok(Reply::JoinTicket(tx.save(ticket)))
}

pub(super) fn revoke_join_ticket(tx: &mut Tx<'_>, op: &RevokeJoinTicket) -> Result {
    let mut ticket: JoinTicket = tx.require(&op.id)?;
    ticket.revoked_at = ticket.revoked_at.or(Some(tx.now));
    Ok(Reply::JoinTicket(tx.save(ticket)))
}

pub(super) fn issue_boot_ticket(tx: &mut Tx<'_>, op: &IssueBootTicket) -> Result {
    let machine = tx.tables().require::<Machine>(&op.machine)?.clone();
    if machine.partition.as_ref() != Some(&op.partition) {
        return Err(Error::new(
            ErrorCode::MachineForeign,
            format!(
                "machine \"{}\" is not in partition \"{}\"",
                op.machine, op.partition
            ),
        )
        .object("machine", op.machine));
    }
    if !machine.macs().contains(&op.mac) {
        return Err(Error::new(
            ErrorCode::MachineForeign,
            format!("machine \"{}\" did not boot from {}", op.machine, op.mac),
        )
        .object("machine", op.machine));
    }
    boots::check_phase(tx.tables(), &machine)?;
    let life = op.expires_at.since_ms(tx.now);
    if life == 0 || life > BOOT_LIFE_MAX_MS {
        return Err(Error::invalid(
            "expires_at",
            "must be in the next 15 minutes",
        ));
    }
    let older = tx.tables().index().machine_boot_tickets.get(&op.machine);
    for id in older.cloned().unwrap_or_default() {
        tx.delete::<BootTicket>(&id);
    }
    let ticket = BootTicket {
        id: op.id,
        machine: op.machine,
        mac: op.mac,
        secret: op.secret.clone(),
        expires_at: op.expires_at,
        redeemed_at: None,
    };
    nonce::prepare(tx, &machine, op.expires_at)?;
    Ok(Reply::BootTicket(tx.save(ticket)))
}

pub(super) fn redeem_boot_ticket(tx: &mut Tx<'_>, op: &RedeemBootTicket) -> Result {
    const KIND: &str = "boot-ticket";
    let ticket = tx
        .get::<BootTicket>(&op.id)
        .ok_or_else(|| unknown(KIND, op.id))?;
    let mut ticket = BootTicket::clone(ticket);
    let secrets = (&ticket.secret, &op.secret);
    check_ticket(
        KIND,
        op.id,
        secrets,
        ticket.redeemed_at,
        ticket.expires_at,
        tx.now,
    )?;
    if (ticket.machine, ticket.mac) != (op.machine, op.mac) {
        return Err(refuse(
            ErrorCode::TicketForeign,
            KIND,
            op.id,
            "is for another machine",
        ));
    }
    let machine = tx.tables().require::<Machine>(&op.machine)?.clone();
    boots::check_phase(tx.tables(), &machine)?;
    nonce::redeem(tx, op.machine, op.nonce.as_ref())?;
    boots::end_credentials(tx, op.machine, "the machine booted again");
    ticket.redeemed_at = Some(tx.now);
    Ok(Reply::BootTicket(tx.save(ticket)))
}

pub(super) fn record_certificate(tx: &mut Tx<'_>, op: &RecordCertificate) -> Result {
    if tx.get::<Certificate>(&op.0.serial).is_some() {
        return Err(Error::already_exists("certificate", &op.0.serial));
    }
    check_allocation(tx, &op.0)?;
    tx.save(op.0.clone());
    Ok(Reply::None)
}

/// The allocation may have ended since the certificate was asked for, and so may the boot.
pub(super) fn check_allocation(tx: &Tx<'_>, certificate: &Certificate) -> Check {
    if let (Some(id), None) = (&certificate.machine, certificate.allocation) {
        return check_hammer(tx, *id);
    }
    let allocation_of = |id: &MachineId| {
        tx.get::<Machine>(id)
            .and_then(|machine| machine.allocation.as_ref())
            .map(|a| a.id)
    };
    let current = certificate.machine.as_ref().and_then(allocation_of);
    if certificate.allocation.is_some() && certificate.allocation != current {
        return Err(Error::new(
            ErrorCode::MachineNotAllocated,
            format!("the allocation of \"{}\" is over", certificate.identity),
        ));
    }
    Ok(())
}

/// hammer has an identity only while it may run.
fn check_hammer(tx: &Tx<'_>, id: MachineId) -> Check {
    let machine = tx.tables().require::<Machine>(&id)?;
    if hammer_may_run(machine) {
        return Ok(());
    }
    let text = format!(
        "machine \"{id}\" is {}: hammer does not run on it now",
        machine.phase
    );
    Err(Error::new(ErrorCode::WrongPhase, text).object("machine", id))
}

pub(super) fn revoke_certificates(tx: &mut Tx<'_>, op: &RevokeCertificates) -> Result {
    let chosen: Vec<_> = match &op.choice {
        CertificateChoice::Serial(serial) => {
            tx.tables().require::<Certificate>(serial)?;
            vec![serial.clone()]
        }
        CertificateChoice::Identity(identity) => tx
            .tables()
            .all::<Certificate>()
            .filter(|certificate| certificate.identity == *identity)
            .map(|certificate| certificate.serial.clone())
            .collect(),
        CertificateChoice::Allocation(machine, allocation) => {
            return Ok(Reply::Serials(revoke_allocation(
                tx,
                *machine,
                *allocation,
                &op.reason,
            )));
        }
    };
    Ok(Reply::Serials(revoke(tx, chosen, &op.reason)))
}

/// Revokes every certificate of an allocation.
pub(super) fn revoke_allocation(
    tx: &mut Tx<'_>,
    machine: MachineId,
    allocation: AllocationId,
    reason: &str,
) -> Vec<String> {
    let serials = tx
        .tables()
        .index()
        .machine_certificates
        .get(&machine)
        .into_iter()
        .flatten();
    let (chosen, identities): (Vec<_>, BTreeSet<_>) = serials
        .filter_map(|serial| tx.get::<Certificate>(serial))
        .filter(|certificate| certificate.allocation == Some(allocation))
        .map(|certificate| (certificate.serial.clone(), certificate.identity.clone()))
        .unzip();
    // A renewal that is under way must find that it comes too late.
    for id in identities {
        if let Some(identity) = tx.get::<Identity>(&id).filter(|it| it.revoked_at.is_none()) {
            let revoked = Identity {
                revoked_at: Some(tx.now),
                revoked_reason: reason.to_owned(),
                ..Identity::clone(identity)
            };
            tx.save(revoked);
        }
    }
    revoke(tx, chosen, reason)
}

pub(super) fn revoke(tx: &mut Tx<'_>, serials: Vec<String>, reason: &str) -> Vec<String> {
    let mut revoked = Vec::new();
    for serial in serials {
        let Some(certificate) = tx.get::<Certificate>(&serial) else {
            continue;
        };
        if certificate.revoked_at.is_some() {
            continue;
        }
        let mut certificate = Certificate::clone(certificate);
        certificate.revoked_at = Some(tx.now);
        certificate.revoked_reason = reason.to_owned();
        tx.save(certificate);
        revoked.push(serial);
    }
    revoked
}

pub(super) fn put_ca(tx: &mut Tx<'_>, op: &PutCa) -> Result {
    tx.save::<CaRecord>(op.0.clone());
    Ok(Reply::None)
}

pub(super) fn put_signing_key(tx: &mut Tx<'_>, op: &PutSigningKey) -> Result {
    tx.save::<SigningKey>(op.0.clone());
    Ok(Reply::None)
}
