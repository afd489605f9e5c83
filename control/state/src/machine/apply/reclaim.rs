//! The way back from a tenant: power off, port back, boot from the network, wipe.
//!
//! Each step is a phase of the machine, so that it goes on after a restart of control. A step
//! that needs the BMC is tried [`STEP_ATTEMPTS_MAX`] times; then the machine is held, and its port
//! is isolated when its power could not be cut: nobody knows what runs on it. The allocation keeps
//! its addresses, AS number and segment until the switches report that its ports have left them.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, Vni};

use crate::identity::apply::certificate;
use crate::machine::apply::orders::{cancel_life, cancel_open, open_orders, order_life};
use crate::machine::apply::{boots, events, handover, machine};
use crate::machine::command::FreeMachine;
use crate::machine::entity::{
    Availability, BmcAction, BmcOrder, EventKind, HoldCause, Machine, OrderPurpose, OrderState,
    Phase, PortLink,
};
use crate::machine::phase::{PhaseEvent, STEP_ATTEMPTS_MAX, enter};
use crate::machine::read::port_vni;
use crate::meta::label;
use crate::network::apply::{ip, pool};
use crate::network::entity::PoolNumber;
use crate::reply::Reply;
use crate::switch::entity::Switch;
use crate::tables::{Tables, Tx};

pub(crate) fn free(tx: &mut Tx<'_>, op: &FreeMachine) -> Result<Reply, Error> {
    let mut machine: Machine = tx.require(&op.id)?;
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
    let is_under_way = machine.is_leaving() && machine.allocation.is_some();
    if machine.phase.is_reclaim() || is_under_way {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    let Some(allocation) = &machine.allocation else {
        return Err(Error::new(
            ErrorCode::MachineNotAllocated,
            format!("machine \"{}\" is not allocated", op.id),
        )
        .object("machine", op.id));
    };
    if op.project.is_none() {
        // Nobody but its project gives a living machine back.
        machine::check_is_dead(tx.tables(), &machine)?;
    }
    let reason = format!("freed by {}", tx.actor);
    certificate::revoke_allocation(tx, op.id, allocation.id, "the machine was freed");
    boots::end(tx, op.id, "the machine was freed");
    cancel_open(tx, op.id);
    let now = tx.now;
    events::record(tx, op.id, EventKind::MachineReclaim, &reason, now);
    enter(&mut machine, PhaseEvent::Freed, now, reason);
    machine.trace = tx.trace.map(str::to_owned);
    let machine = tx.update(machine);
    power_off(tx, machine.id)?;
    tx.require::<Machine>(&op.id)
        .map(|machine| Reply::Machine(tx.save(machine)))
}

/// Starts over for a machine that is held because of its BMC.
pub(crate) fn restart(tx: &mut Tx<'_>, machine: &mut Machine, event: PhaseEvent, reason: &str) {
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

/// Goes on when an order of the life cycle ends, well or not.
pub(crate) fn order_ended(tx: &mut Tx<'_>, order: &BmcOrder) -> Result<(), Error> {
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
        (Phase::ReclaimBoot, _, None) if open_life(tx, machine.id) == 0 => {
            enter(&mut machine, PhaseEvent::PoweredOn, tx.now, "");
            tx.save(machine);
            Ok(())
        }
        (Phase::ReclaimRegister, _, Some(error)) => {
            machine.reason = format!("{} failed: {error}", order.action.as_str());
            tx.save(machine);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn open_life(tx: &Tx<'_>, machine: MachineId) -> usize {
    open_orders(tx, machine)
        .iter()
        .filter(|o| o.purpose == OrderPurpose::Life)
        .count()
}

/// The same step again, or the end of patience.
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

/// Holds the machine; isolated when its power is not known to be off.
fn give_up(tx: &mut Tx<'_>, mut machine: Machine, reason: &str) -> Result<(), Error> {
    let id = machine.id;
    enter(&mut machine, PhaseEvent::BmcGaveUp, tx.now, reason);
    tx.update(machine);
    go_on(tx, id)
}

/// Takes everything of the allocation back. Its numbers get other owners from then on, so that
/// every port must have left the tenant's segment before.
fn release(tx: &mut Tx<'_>, machine: &mut Machine) {
    ip::release_all(tx, machine.id);
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
    // It may be a size of its own by now.
    machine.size = crate::machine::read::match_size(tx.tables(), &machine.hardware);
}

fn powered_off(tx: &mut Tx<'_>, mut machine: Machine) -> Result<(), Error> {
    enter(&mut machine, PhaseEvent::PoweredOff, tx.now, "");
    let machine = tx.update(machine);
    go_on(tx, machine.id)
}

/// `true` if the machine goes on as soon as its ports are where they belong.
pub(crate) fn awaits_ports(machine: &Machine) -> bool {
    match machine.phase {
        Phase::ReclaimPorts | Phase::Held(HoldCause::Ports) => true,
        Phase::Held(HoldCause::Bmc) => machine.allocation.is_some(),
        _ => false,
    }
}

/// Goes on with a machine whose ports may be where they belong now.
pub(crate) fn go_on(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
    if !awaits_ports(&machine) || !ports_moved(tx.tables(), &machine) {
        return Ok(());
    }
    release(tx, &mut machine);
    match machine.phase {
        Phase::ReclaimPorts => {
            tx.update(machine);
            boot(tx, id)
        }
        // It waited for long: somebody may have powered it on meanwhile.
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

/// Holds a machine whose ports no switch reported as moved: powered on it would be in the segment
/// of its last tenant.
pub(crate) fn hold_for_ports(tx: &mut Tx<'_>, mut machine: Machine) {
    let reason = unmoved_reason(tx.tables(), &machine);
    enter(&mut machine, PhaseEvent::PortsNeverMoved, tx.now, reason);
    tx.update(machine);
}

/// Names the first port that is not where it belongs.
pub(crate) fn unmoved_reason(tables: &Tables, machine: &Machine) -> String {
    let mut links = tenant_links(machine);
    let link = links.find(|link| !is_moved(tables, link));
    link.map_or_else(String::new, |link| {
        format!(
            "switch {} has not reported that port {} left the tenant's segment",
            link.switch, link.port
        )
    })
}

/// `true` if every port of the machine is where it belongs, as its switch reports. A switch that
/// is gone reports nothing: deleting it by force takes its cables away.
fn ports_moved(tables: &Tables, machine: &Machine) -> bool {
    tenant_links(machine).all(|link| is_moved(tables, link))
}

/// Cables that a tenant may have had: a port that only its switch tells of was never in use.
fn tenant_links(machine: &Machine) -> impl Iterator<Item = &PortLink> {
    machine.links.iter().filter(|link| !link.unclaimed)
}

fn is_moved(tables: &Tables, link: &PortLink) -> bool {
    let Some(switch) = tables.get::<Switch>(&link.switch) else {
        return false;
    };
    let port = switch.ports.get(&link.port);
    let observed = port.and_then(|port| port.observed.as_ref());
    observed.is_some_and(|seen| seen.vni == port_vni(tables, switch, &link.port))
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

/// The port is back: boot from the network.
fn boot(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
    enter(&mut machine, PhaseEvent::PortsMoved, tx.now, "");
    tx.save(machine);
    boot_orders(tx, id)
}

fn boot_orders(tx: &mut Tx<'_>, id: MachineId) -> Result<(), Error> {
    let machine: Machine = tx.require(&id)?;
    order_life(tx, &machine, BmcAction::BootPxe)?;
    order_life(tx, &machine, BmcAction::PowerOn)?;
    Ok(())
}

/// Orders a machine to boot from the network once more, and says why.
pub(crate) fn nudge(tx: &mut Tx<'_>, id: MachineId, why: &str) -> Result<(), Error> {
    cancel_life(tx, id);
    let machine: Machine = tx.require(&id)?;
    order_life(tx, &machine, BmcAction::BootPxe)?;
    order_life(tx, &machine, BmcAction::PowerCycle)?;
    let now = tx.now;
    events::record(tx, id, EventKind::PlannedReboot, why, now);
    Ok(())
}

/// A machine that hammer waits for runs what its disk had on it: pixie knew no better. It does
/// not call, so that without this it would stay there until its silence is noticed.
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
