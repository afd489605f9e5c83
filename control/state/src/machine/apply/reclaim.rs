//! Reclaim of a machine from its tenant: power off, move the ports back, boot from the network,
//! wipe.
//!
//! Each step is a phase of the machine, so that the reclaim resumes after a restart of control or a
//! change of leader. A step that needs the BMC is tried [`STEP_ATTEMPTS_MAX`] times; then the
//! machine is held, and its ports are isolated if its power could not be cut: the tenant's system
//! may still run. The allocation keeps
//! its addresses, AS number and segment until the switches report that its ports have left them.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, Vni};

use crate::allocation::entity::NodeAllocation;
use crate::firewall::apply::rules::forget_firewall;
use crate::identity::apply::certificate;
use crate::machine::apply::orders::{cancel_life, cancel_open, open_orders, order_life};
use crate::machine::apply::{boots, events, handover, machine, ports};
use crate::machine::command::FreeMachine;
use crate::machine::entity::{
    Availability, BmcAction, BmcOrder, EventKind, HoldCause, Machine, OrderPurpose, OrderState,
    Phase,
};
use crate::machine::phase::{PhaseEvent, STEP_ATTEMPTS_MAX, enter};
use crate::meta::label;
use crate::network::apply::{ip, pool};
use crate::network::entity::PoolNumber;
use crate::node::apply::instance::end_use;
use crate::reply::{ApplyResult, Reply};
use crate::switch::entity::Switch;
use crate::tables::{Tables, Tx};

/// Ends the tenancy of a machine and begins its reclaim, for a caller of the API.
pub(crate) fn free(tx: &mut Tx<'_>, op: &FreeMachine) -> ApplyResult {
    let allocation = tx.get::<Machine>(&op.id);
    let allocation = allocation.and_then(|machine| machine.allocation.as_ref());
    // A project deletes its claim, and does not know the machine.
    if op.project.is_some() && allocation.is_some_and(|found| found.claim.is_some()) {
        return Err(Error::not_found("machine", op.id));
    }
    free_machine(tx, op)
}

/// Ends the tenancy of a machine and begins its reclaim.
pub(crate) fn free_machine(tx: &mut Tx<'_>, op: &FreeMachine) -> ApplyResult {
    let machine: Machine = tx.require(&op.id)?;
    let owner = machine.allocation.as_ref().map(|a| a.project);
    if op.project.is_some() && owner != op.project {
        return Err(Error::not_found("machine", op.id));
    }
    if machine.condition.state == Availability::Locked {
        return Err(Error::new(
            ErrorCode::MachineLocked,
            format!(
                "machine \"{}\" is locked: {}",
                op.id, machine.condition.description
            ),
        )
        .object("machine", op.id));
    }
    // A repeated call is a success and starts nothing: the reclaim's attempts and deadlines must
    // not begin anew because a client lost its answer.
    let is_under_way = machine.is_leaving() && machine.allocation.is_some();
    if machine.phase.is_reclaim() || is_under_way {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    if machine.allocation.is_none() {
        return Err(Error::new(
            ErrorCode::MachineNotAllocated,
            format!("machine \"{}\" is not allocated", op.id),
        )
        .object("machine", op.id));
    }
    if op.project.is_none() {
        // An administrator frees only a dead machine: a living one is its project's to give back.
        machine::check_is_dead(tx.tables(), &machine)?;
    }
    let reason = format!("freed by {}", tx.actor);
    end_tenancy(tx, machine, &reason, "the machine was freed")?;
    // Read again: the power-off may have held the machine.
    tx.require::<Machine>(&op.id)
        .map(|machine| Reply::Machine(tx.save(machine)))
}

/// Ends the tenancy of an allocated machine and begins its reclaim. `reason` is for the machine's
/// events, `revoked` for the credentials that end.
pub(crate) fn end_tenancy(
    tx: &mut Tx<'_>,
    mut machine: Machine,
    reason: &str,
    revoked: &str,
) -> Result<(), Error> {
    let id = machine.id;
    // Credentials end with the call, not with the reclaim: the tenant's system may run on until
    // its power is cut, and must not act for the project any more.
    if let Some(allocation) = &machine.allocation {
        certificate::revoke_allocation(tx, id, allocation.id, revoked);
    }
    boots::end(tx, id, revoked);
    // An open order of the tenant, a power-on say, would undo the power-off that follows.
    cancel_open(tx, id);
    // A node allocation ends with the use for which it held the machine.
    if let Some(allocation) = machine.tenure.reserved_by.take() {
        tx.delete::<NodeAllocation>(&allocation);
    }
    end_use(tx, id);
    let now = tx.now;
    events::record(tx, id, EventKind::MachineReclaim, reason, now);
    enter(&mut machine, PhaseEvent::Freed, now, reason);
    machine.trace = tx.trace.map(str::to_owned);
    tx.update(machine);
    power_off(tx, id)
}

/// Begins the reclaim of a held machine anew. The caller saves the machine and orders the power
/// off.
pub(crate) fn restart(tx: &mut Tx<'_>, machine: &mut Machine, event: PhaseEvent, reason: &str) {
    // The late end of an order of the first reclaim must not count as a step of the second.
    cancel_life(tx, machine.id);
    boots::end(tx, machine.id, "the machine is reclaimed again");
    enter(machine, event, tx.now, reason);
    machine.trace = tx.trace.map(str::to_owned);
}

/// Orders the power off; a machine that no agent can reach is held at once.
pub(crate) fn power_off(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let machine: Machine = tx.require(&id)?;
    match order_life(tx, &machine, BmcAction::PowerOff) {
        Ok(_) => Ok(()),
        Err(error) => give_up(tx, machine, &error.message),
    }
}

/// Takes the step that follows the end of a life-cycle order, successful or not.
pub(crate) fn order_ended(tx: &mut Tx<'_>, order: &BmcOrder) -> Result<(), Error> {
    // Before the purpose is looked at: an operator's power-off ends hammer just as well.
    handover::after_power(tx, order);
    if order.purpose != OrderPurpose::Life {
        return Ok(());
    }
    let Some(mut machine) = tx.get::<Machine>(&order.machine).map(|m| Machine::clone(m)) else {
        return Ok(());
    };
    let error = match order.state {
        OrderState::Done => None,
        _ => Some(order.error.clone().unwrap_or_default()),
    };
    match (machine.phase, order.action, error) {
        (Phase::BootOrder, BmcAction::BootDisk, error) => {
            // A failure does not stop the installation: a machine that boots from the network all
            // the same is sent to its disk by pixie.
            let reason = error.map(|e| format!("the BMC did not set the boot device: {e}"));
            let reason = reason.unwrap_or_default();
            enter(&mut machine, PhaseEvent::BootDiskEnded, tx.now, reason);
            tx.save(machine);
            Ok(())
        }
        (Phase::ReclaimPowerOff, BmcAction::PowerOff, None) => powered_off(tx, machine),
        (Phase::ReclaimPowerOff, BmcAction::PowerOff, Some(error)) => {
            retry(tx, machine, &format!("power off failed: {error}"))
        }
        (Phase::ReclaimBoot, _, Some(error)) => {
            let what = order.action.as_str();
            retry(tx, machine, &format!("{what} failed: {error}"))
        }
        // Boot device and power are two orders: the first end alone proves nothing yet.
        (Phase::ReclaimBoot, _, None) if open_life(tx, machine.id) == 0 => {
            enter(&mut machine, PhaseEvent::PoweredOn, tx.now, "");
            tx.save(machine);
            Ok(())
        }
        // A failed reboot of a silent machine: the silence itself is judged by its own deadline.
        (Phase::ReclaimRegister, _, Some(error)) => {
            machine.reason = format!("{} failed: {error}", order.action.as_str());
            tx.save(machine);
            Ok(())
        }
        // The phase has moved on since the order was given: its end is history.
        _ => Ok(()),
    }
}

/// Number of open life-cycle orders of a machine.
fn open_life(tx: &Tx<'_>, machine: MachineId) -> usize {
    open_orders(tx, machine)
        .iter()
        .filter(|order| order.purpose == OrderPurpose::Life)
        .count()
}

/// Tries the step again, or holds the machine after [`STEP_ATTEMPTS_MAX`] attempts.
fn retry(tx: &mut Tx<'_>, mut machine: Machine, reason: &str) -> Result<(), Error> {
    cancel_life(tx, machine.id);
    machine.step_attempts += 1;
    if machine.step_attempts >= STEP_ATTEMPTS_MAX {
        return give_up(tx, machine, reason);
    }
    machine.reason = format!("attempt {}: {reason}", machine.step_attempts + 1);
    let machine = tx.save(machine);
    match machine.phase {
        Phase::ReclaimPowerOff => power_off(tx, machine.id),
        _ => boot_orders(tx, machine.id),
    }
}

/// Holds the machine. The phase table isolates it if its power is not known to be off.
fn give_up(tx: &mut Tx<'_>, mut machine: Machine, reason: &str) -> Result<(), Error> {
    let id = machine.id;
    enter(&mut machine, PhaseEvent::BmcGaveUp, tx.now, reason);
    tx.update(machine);
    // The ports may be out of the tenant's segment already; no switch would report that again.
    go_on(tx, id)
}

/// Releases the addresses, the AS number and the allocation. Their next owner may get them at once:
/// call it only after the switches reported every port out of the tenant's segment, or two machines
/// would answer for one address.
fn release(tx: &mut Tx<'_>, machine: &mut Machine) {
    ip::release_all(tx, machine.id);
    forget_firewall(tx, machine.id);
    if let Some(allocation) = machine.allocation.take() {
        let number = PoolNumber::Asn(allocation.asn.0);
        pool::release(
            tx,
            number,
            Some(allocation.project),
            machine.partition.as_ref(),
        );
    }
    machine.meta.labels.remove(label::MACHINE_ASN);
    machine.dirty = true;
    machine.clean_disks.clear();
    // Sizes may have changed during the tenancy, in which the machine kept its own.
    machine.size = crate::machine::read::match_size(tx.tables(), &machine.hardware);
}

/// Moves the ports back once the power is off.
fn powered_off(tx: &mut Tx<'_>, mut machine: Machine) -> Result<(), Error> {
    enter(&mut machine, PhaseEvent::PoweredOff, tx.now, "");
    let machine = tx.update(machine);
    // A machine without cables, or whose ports are back already, waits for no report.
    go_on(tx, machine.id)
}

/// Resumes the way of a machine that waits for its ports, if they are where they belong now. Every report of a
/// switch calls it: it does nothing in other phases.
pub(crate) fn go_on(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
    if !ports::awaits_report(&machine) || ports::first_unmoved(tx.tables(), &machine).is_some() {
        return Ok(());
    }
    if machine.phase == Phase::TenantPorts {
        enter(&mut machine, PhaseEvent::PortsMoved, tx.now, "");
        tx.save(machine);
        return Ok(());
    }
    release(tx, &mut machine);
    match machine.phase {
        Phase::ReclaimPorts => {
            tx.update(machine);
            boot(tx, id)
        }
        // It was held for long: somebody may have powered it on, so that the power-off is repeated
        // before anything boots.
        Phase::Held(HoldCause::Ports) => {
            restart(
                tx,
                &mut machine,
                PhaseEvent::PortsMoved,
                "its ports are back",
            );
            tx.update(machine);
            power_off(tx, id)
        }
        _ => {
            tx.update(machine);
            Ok(())
        }
    }
}

/// Ends the wait for the ports. A reclaimed machine is held: powered on, it would run in the segment
/// of its last tenant. A tenant's machine runs.
pub(crate) fn stop_waiting_for_ports(tx: &mut Tx<'_>, mut machine: Machine) {
    let reason = match machine.phase {
        Phase::TenantPorts => ports::lacking_reason(tx.tables(), &machine),
        _ => ports::unmoved_reason(tx.tables(), &machine),
    };
    enter(&mut machine, PhaseEvent::PortsNeverMoved, tx.now, reason);
    tx.update(machine);
}

/// `true` if a port of the machine may still carry frames, as far as its switches report: it was
/// not reported as isolated and without a carrier.
pub(crate) fn may_be_connected(tables: &Tables, machine: &Machine) -> bool {
    machine.links.iter().any(|link| {
        let switch = tables.get::<Switch>(&link.switch);
        let port = switch.and_then(|switch| switch.ports.get(&link.port));
        let observed = port.and_then(|port| port.observed.as_ref());
        observed.is_none_or(|seen| seen.vni != Vni::NONE || seen.oper_up)
    })
}

/// Boots the machine from the network: its ports are back.
fn boot(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
    enter(&mut machine, PhaseEvent::PortsMoved, tx.now, "");
    tx.save(machine);
    boot_orders(tx, id)
}

/// Orders boot device and power. Their sequence keeps the device first.
fn boot_orders(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let machine: Machine = tx.require(&id)?;
    order_life(tx, &machine, BmcAction::BootPxe)?;
    order_life(tx, &machine, BmcAction::PowerOn)?;
    Ok(())
}

/// Orders a reboot from the network and records `why` as a planned reboot.
pub(crate) fn nudge(tx: &mut Tx<'_>, id: MachineId, why: &str) -> Result<(), Error> {
    // Orders of the last attempt would reboot the machine again in the middle of this one.
    cancel_life(tx, id);
    let machine: Machine = tx.require(&id)?;
    order_life(tx, &machine, BmcAction::BootPxe)?;
    order_life(tx, &machine, BmcAction::PowerCycle)?;
    let now = tx.now;
    events::record(tx, id, EventKind::PlannedReboot, why, now);
    Ok(())
}

/// Reboots a machine that should run hammer but was sent to its disk by a pixie that could not
/// reach control. The system on the disk does not call: without this step the machine would be lost
/// until its silence is due.
pub(crate) fn astray(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let machine: Machine = tx.require(&id)?;
    let is_awaited = matches!(
        machine.phase,
        Phase::ReclaimBoot
            | Phase::ReclaimRegister
            | Phase::Wiping
            | Phase::Waiting
            | Phase::Installing
    );
    if !is_awaited || machine.condition.state == Availability::Locked {
        return Ok(());
    }
    nudge(tx, id, "booted from its disk while control was away")
}
