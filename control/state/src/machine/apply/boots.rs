//! Credentials of one boot of a machine: what hammer was given, and its end.
//!
//! A ticket, a certificate and a token of hammer are good for one boot. They end when the installed
//! system takes over, when the machine is released, and when the next boot has proved itself by a
//! ticket or a token of its own. A mere boot request ends nothing: any host of the provisioning
//! segment can send such packets and would log a working hammer out.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::cluster::read::{not_reconciled, restored};
use crate::identity::apply::certificate::revoke;
use crate::identity::apply::ticket::{TicketCheck, check_ticket, refuse, unknown};
use crate::identity::apply::token;
use crate::identity::entity::{BootTicket, Certificate, Identity, Token};
use crate::machine::apply::nonce;
use crate::machine::command::{CreateMachineToken, IssueBootTicket, RedeemBootTicket};
use crate::machine::entity::Machine;
use crate::machine::read::{binding_epoch, hammer_may_boot, is_left_alone};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

/// Refuses tickets and tokens in phases in which pixie does not boot hammer.
pub(crate) fn check_phase(tables: &Tables, machine: &Machine) -> CheckResult {
    if hammer_may_boot(tables, machine) {
        return Ok(());
    }
    if restored(tables).is_some() {
        return Err(not_reconciled().object("machine", machine.id));
    }
    if is_left_alone(machine) {
        let why = &machine.condition.description;
        let text = format!("machine \"{}\" is locked: {why}", machine.id);
        return Err(Error::new(ErrorCode::MachineLocked, text).object("machine", machine.id));
    }
    let text = format!(
        "machine \"{}\" is {}: hammer does not boot on it now",
        machine.id, machine.phase
    );
    let error = Error::new(ErrorCode::WrongPhase, text).object("machine", machine.id);
    Err(error.hint("free the machine first, or set it available when it is held"))
}

/// Ends the machine's boot: tickets, certificates and tokens of its hammer.
pub(crate) fn end(tx: &mut Tx<'_>, machine: MachineId, reason: &str) {
    let tickets = tx.tables().index().machine_boot_tickets.get(&machine);
    for id in tickets.cloned().unwrap_or_default() {
        tx.delete::<BootTicket>(&id);
    }
    end_credentials(tx, machine, reason);
}

/// Ends certificates and tokens of an earlier boot. The ticket of the next boot stays.
pub(crate) fn end_credentials(tx: &mut Tx<'_>, machine: MachineId, reason: &str) {
    end_identity(tx, machine, reason);
    end_tokens(tx, machine);
}

/// Ends the tokens of hammer alone.
pub(crate) fn end_tokens(tx: &mut Tx<'_>, machine: MachineId) {
    let tokens = tx.tables().index().machine_tokens.get(&machine);
    for id in tokens.cloned().unwrap_or_default() {
        if let Some(token) = tx.get::<Token>(&id).map(|token| Token::clone(token)) {
            take_machine(tx, token, machine);
        }
    }
}

/// `true` if hammer still has a ticket, a certificate or a token.
pub(crate) fn is_open(tables: &Tables, machine: MachineId) -> bool {
    let index = tables.index();
    let serials = index.machine_certificates.get(&machine);
    let is_live = |serial: &String| {
        let certificate = tables.get::<Certificate>(serial);
        certificate.is_some_and(|found| found.allocation.is_none() && found.revoked_at.is_none())
    };
    index.machine_boot_tickets.contains_key(&machine)
        || index.machine_tokens.contains_key(&machine)
        || serials.into_iter().flatten().any(is_live)
}

/// Revokes hammer's certificates and identities. Certificates of an allocation belong to the
/// installed system and end with the allocation.
fn end_identity(tx: &mut Tx<'_>, machine: MachineId, reason: &str) {
    let serials = tx.tables().index().machine_certificates.get(&machine);
    let of_hammer = serials
        .into_iter()
        .flatten()
        .filter_map(|serial| tx.get::<Certificate>(serial))
        .filter(|certificate| certificate.allocation.is_none());
    let (serials, identities): (Vec<_>, BTreeSet<_>) = of_hammer
        .map(|certificate| (certificate.serial.clone(), certificate.identity.clone()))
        .unzip();
    for id in identities {
        let live = tx.get::<Identity>(&id);
        let live = live.filter(|identity| identity.revoked_at.is_none());
        if let Some(identity) = live.map(|identity| Identity::clone(identity)) {
            tx.save(Identity {
                revoked_at: Some(tx.now),
                revoked_reason: reason.to_owned(),
                ..identity
            });
        }
    }
    revoke(tx, serials, reason);
}

/// Removes the rights on a machine from a token, also from tokens that hammer's token made. A token
/// left without any right is revoked.
fn take_machine(tx: &mut Tx<'_>, mut token: Token, machine: MachineId) {
    let is_machine = |text: &str| text.parse().ok() == Some(machine);
    token
        .machine_roles
        .retain(|subject, _| !is_machine(subject));
    token
        .permissions
        .retain(|permission| !is_machine(&permission.subject));
    // A user's token may name the machine among others: it keeps its other rights.
    let has_rights = !token.machine_roles.is_empty()
        || !token.permissions.is_empty()
        || !token.project_roles.is_empty()
        || !token.tenant_roles.is_empty()
        || token.admin_role.is_some()
        || token.infra_role.is_some();
    if !has_rights {
        token.revoked_at = token.revoked_at.or(Some(tx.now));
    }
    tx.update(token);
}

/// A token for the hammer of the published stack: the machine's next boot.
pub(crate) fn create_token(tx: &mut Tx<'_>, op: &CreateMachineToken) -> ApplyResult {
    let machine = tx.tables().require::<Machine>(&op.machine)?.clone();
    check_phase(tx.tables(), &machine)?;
    // Before the new token is made: the end takes every token of the machine.
    end(tx, op.machine, "the machine booted again");
    token::create(tx, &op.token)
}

/// Longest validity of a boot ticket, milliseconds; a longer one is refused. A boot into hammer
/// takes minutes.
const BOOT_LIFE_MAX_MS: u64 = 15 * 60_000;

/// Issues the ticket of the next boot, in place of older tickets.
pub(crate) fn issue_boot_ticket(tx: &mut Tx<'_>, op: &IssueBootTicket) -> ApplyResult {
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
    check_phase(tx.tables(), &machine)?;
    let life = op.expires_at.since_ms(tx.now);
    if life == 0 || life > BOOT_LIFE_MAX_MS {
        return Err(Error::invalid(
            "expires_at",
            "must be in the next 15 minutes",
        ));
    }
    // The certificate and tokens of the running boot stay: the request may be forged, and only the
    // redeemed ticket proves a new boot.
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
        epoch: binding_epoch(tx.tables(), &machine),
    };
    // Ordered now, so that the BMC holds the nonce by the time hammer is up and reads it.
    nonce::prepare(tx, &machine, op.expires_at)?;
    Ok(Reply::BootTicket(tx.save(ticket)))
}

/// Redeems a ticket, which proves a new boot: credentials of the one before end.
pub(crate) fn redeem_boot_ticket(tx: &mut Tx<'_>, op: &RedeemBootTicket) -> ApplyResult {
    const KIND: &str = "boot-ticket";
    let ticket = tx
        .get::<BootTicket>(&op.id)
        .ok_or_else(|| unknown(KIND, op.id))?;
    let mut ticket = BootTicket::clone(ticket);
    let check = TicketCheck {
        kind: KIND,
        id: op.id,
        secret: &ticket.secret,
        shown: &op.secret,
        redeemed_at: ticket.redeemed_at,
        expires_at: ticket.expires_at,
    };
    check_ticket(&check, tx.now)?;
    if (ticket.machine, ticket.mac) != (op.machine, op.mac) {
        return Err(refuse(
            ErrorCode::TicketForeign,
            KIND,
            op.id,
            "is for another machine",
        ));
    }
    let machine = tx.tables().require::<Machine>(&op.machine)?.clone();
    check_phase(tx.tables(), &machine)?;
    // A boot from before the binding would end the hammer that the claim's installation runs on.
    if ticket.epoch < binding_epoch(tx.tables(), &machine) {
        let why = "is of an earlier binding of its machine";
        return Err(refuse(ErrorCode::TicketForeign, KIND, op.id, why));
    }
    // All checks come before the first change: a refused stranger must neither spend the nonce nor
    // end the credentials of the machine that runs.
    nonce::redeem(tx, op.machine, op.nonce.as_ref())?;
    end_credentials(tx, op.machine, "the machine booted again");
    ticket.redeemed_at = Some(tx.now);
    Ok(Reply::BootTicket(tx.save(ticket)))
}
