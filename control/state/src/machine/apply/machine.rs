//! Changes of machines by users and admins, other than allocation and release.

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::fields::check_description;
use crate::levels::{CLOSED_FIREWALLS, DOUBTED_DISKS, feature_level};
use crate::machine::apply::liveliness::DEAD_AFTER_MS;
use crate::machine::apply::rewipe::wipe_or_wait;
use crate::machine::apply::{allocate, boots, links, orders, reclaim, restored};
use crate::machine::command::{DeleteMachine, SetMachineState, UpdateMachine};
use crate::machine::entity::{
    AllocationType, Availability, BmcOrder, Condition, EventLog, HoldCause, Liveliness, Machine,
    Phase, Segment,
};
use crate::machine::phase::{PhaseEvent, enter};
use crate::machine::read::cables::concerned::concerned;
use crate::node::apply::record::forget_node;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

/// Changes description, labels or keys of an allocation.
pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateMachine) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.id)?;
    let (meta, phase) = (machine.meta.clone(), machine.phase);
    let is_closed = feature_level(tx.tables()) >= CLOSED_FIREWALLS;
    let is_own = machine.is_held_by(op.project);
    let allocation = machine.allocation.as_mut().filter(|_| is_own);
    let allocation = allocation.ok_or_else(|| Error::not_found("machine", op.id))?;
    op.lock.check("machine", &op.id.to_string(), &meta)?;
    let before = allocation.clone();
    if let Some(description) = &op.description {
        check_description(description)?;
        allocation.description.clone_from(description);
    }
    if let Some(labels) = &op.labels {
        labels.apply(&mut allocation.labels)?;
    }
    if let Some(keys) = &op.ssh_public_keys {
        allocate::check_keys(keys)?;
        allocation.ssh_public_keys.clone_from(keys);
        // Only an administrator changes a firewall's keys. User data of the project stays, and with it
        // the doubt.
        allocation.closed_to_project |= allocation.kind == AllocationType::Firewall
            && allocation.userdata.is_empty()
            && is_closed;
    }
    if *allocation == before {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    // Hammer writes the keys into the system that it installs, and nobody does so later: a change
    // that were accepted here would be stored and never reach the machine.
    let is_written = allocation.install.begun || phase != Phase::Installing;
    if is_written && allocation.ssh_public_keys != before.ssh_public_keys {
        return Err(keys_are_written(op.id));
    }
    allocation.generation += 1;
    allocation.updated_at = tx.now;
    Ok(Reply::Machine(tx.update(machine)))
}

/// The refusal of a change of keys that are on the disk already.
fn keys_are_written(id: MachineId) -> Error {
    let message =
        format!("machine \"{id}\" already has its SSH keys: control cannot change them there");
    let hint = "change authorized_keys on the machine; or free it, and create it with other keys";
    Error::new(ErrorCode::WrongPhase, message)
        .object("machine", id)
        .hint(hint)
}

/// Sets the availability of a machine. Available ends a hold.
pub(crate) fn set_state(tx: &mut Tx<'_>, op: &SetMachineState) -> ApplyResult {
    check_description(&op.description)?;
    let mut machine: Machine = tx.require(&op.id)?;
    check_transition(&machine, op)?;
    let was_locked = machine.condition.state == Availability::Locked;
    machine.condition = match op.state {
        Availability::Available => Condition::default(),
        state => Condition {
            state,
            description: op.description.clone(),
            issuer: tx.actor.to_owned(),
        },
    };
    // A hold because of the BMC or ports begins the whole reclaim anew: what happened to power and
    // cables meanwhile is unknown.
    let mut restarts = false;
    if op.state == Availability::Available {
        match machine.phase {
            Phase::Held(HoldCause::Wipe) => {
                enter(
                    &mut machine,
                    PhaseEvent::MadeAvailable,
                    tx.now,
                    "wiped again",
                );
            }
            Phase::Held(HoldCause::Bmc | HoldCause::Ports) => {
                let reason = format!("reclaimed again by {}", tx.actor);
                reclaim::restart(tx, &mut machine, PhaseEvent::MadeAvailable, &reason);
                restarts = true;
            }
            _ => {}
        }
    }
    let mut machine = tx.update(machine);
    // The claims of a locked free machine do not count, so that those of its rivals may win; made
    // available, they count again.
    let concerned = concerned(tx.tables(), &machine);
    links::take_again(tx, concerned);
    if op.state == Availability::Available {
        let known: Machine = tx.require(&op.id)?;
        restored::release_ports(tx, &known);
        if was_locked && waits_for_wipe(tx.tables(), &known) {
            wipe_or_wait(tx, known);
            machine = tx.save(tx.require(&op.id)?);
        }
    }
    // Only now: the order reads the machine, which must be saved in its new phase.
    if restarts {
        reclaim::power_off(tx, op.id)?;
        machine = tx.save(tx.require(&op.id)?);
    }
    Ok(Reply::Machine(machine))
}

/// `true` if a free machine that hammer runs on is to be wiped, and was not told so while it was locked.
fn waits_for_wipe(tables: &Tables, machine: &Machine) -> bool {
    feature_level(tables) >= DOUBTED_DISKS
        && machine.phase == Phase::Waiting
        && machine.dirty
        && machine.allocation.is_none()
}

/// Refuses to replace one reason for being out of the pool by another: the first would be lost. A
/// tainted machine can be locked, because control itself taints a machine that it cannot wipe.
fn check_transition(machine: &Machine, op: &SetMachineState) -> CheckResult {
    use Availability::{Available, Locked, Tainted};
    let old = &machine.condition;
    match (old.state, op.state) {
        (_, Available) if !op.description.is_empty() => Err(Error::invalid(
            "description",
            "must be empty when the machine is made available",
        )),
        (Available, _) | (_, Available) | (Tainted, Locked) => Ok(()),
        (state, _) => {
            let state = if state == Locked { "locked" } else { "tainted" };
            let id = op.id;
            let message = format!("machine \"{id}\" is {state} already: {}", old.description);
            let hint =
                format!("make it available first: metalmesh machine set-state {id} available");
            let error = Error::new(ErrorCode::WrongPhase, message).object("machine", id);
            Err(error.hint(hint))
        }
    }
}

/// Deletes a machine that is gone.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteMachine) -> ApplyResult {
    let machine = tx.tables().require::<Machine>(&op.id)?.clone();
    if machine.allocation.is_some() {
        return Err(Error::new(
            ErrorCode::MachineAllocated,
            format!("machine \"{}\" is allocated", op.id),
        )
        .object("machine", op.id));
    }
    if machine.condition.state == Availability::Locked {
        return Err(Error::new(
            ErrorCode::MachineLocked,
            format!("machine \"{}\" is locked", op.id),
        )
        .object("machine", op.id));
    }
    check_not_held(&machine)?;
    if machine.segment != Segment::Isolated {
        check_is_dead(tx.tables(), &machine)?;
    } else if reclaim::may_be_connected(tx.tables(), &machine) {
        // Without a carrier it is unplugged, which is better proof than its silence.
        return Err(isolated(&machine));
    }
    // Rivals for its ports are found through its links, and so before it is gone.
    let concerned = concerned(tx.tables(), &machine);
    forget(tx, op.id);
    links::take_again(tx, concerned);
    Ok(Reply::Machine(machine))
}

/// Refuses to delete a machine that a lease or a node allocation promises to a project.
fn check_not_held(machine: &Machine) -> CheckResult {
    let id = machine.id;
    let (code, holder) = match (&machine.tenure.lessee, &machine.tenure.reserved_by) {
        (Some(lessee), _) => (
            ErrorCode::MachineLeased,
            format!("leased to project \"{lessee}\""),
        ),
        (None, Some(by)) => (
            ErrorCode::MachineReserved,
            format!("held by node allocation \"{by}\""),
        ),
        (None, None) => return Ok(()),
    };
    let message = format!("machine \"{id}\" is {holder}");
    Err(Error::new(code, message).object("machine", id))
}

/// Refuses an administrator's action that needs a machine without signs of life.
pub(crate) fn check_is_dead(tables: &Tables, machine: &Machine) -> CheckResult {
    let log = tables.get::<EventLog>(&machine.id);
    let is_silent = log.is_none_or(|log| log.liveliness != Liveliness::Alive);
    let id = machine.id;
    let message = match &machine.allocation {
        // A tenant can silence its machine, which then still runs: only its BMC knows.
        Some(_) if is_silent && is_off(machine) => return Ok(()),
        None if is_silent => return Ok(()),
        Some(allocation) => {
            let how = if is_silent {
                "not known to be off"
            } else {
                "alive"
            };
            format!(
                "machine \"{id}\" is {how}, and project \"{}\" has it",
                allocation.project
            )
        }
        None => format!("machine \"{id}\" is alive"),
    };
    let hint = format!(
        "power it off: metalmesh machine power {id} off; it counts as dead when it was silent for \
         {} minutes",
        DEAD_AFTER_MS / 60_000
    );
    let error = Error::new(ErrorCode::MachineAlive, message).object("machine", id);
    Err(error.hint(hint))
}

/// `true` if the BMC last reported the power as off.
fn is_off(machine: &Machine) -> bool {
    let bmc = machine.bmc.as_ref();
    bmc.is_some_and(|bmc| bmc.power_state.eq_ignore_ascii_case("off"))
}

/// The refusal to delete an isolated machine: without its record its port would go back to the
/// provisioning segment, with whatever runs on the machine.
fn isolated(machine: &Machine) -> Error {
    let id = machine.id;
    let message = format!(
        "machine \"{id}\" is isolated: its power could not be cut, and its last system may still run"
    );
    let hint = format!(
        "reclaim it: metalmesh machine set-state {id} available; or unplug it, and delete it when \
         its switches report no carrier"
    );
    Error::new(ErrorCode::WrongPhase, message)
        .object("machine", id)
        .hint(hint)
}

/// Deletes a free machine with its orders, events, credentials and node record.
pub(crate) fn forget(tx: &mut Tx<'_>, id: MachineId) {
    orders::cancel_open(tx, id);
    boots::end(tx, id, "the machine was deleted");
    let of_machine: Vec<_> = crate::machine::read::machine_orders(tx.tables(), id)
        .map(|order| order.id)
        .collect();
    for order in of_machine {
        tx.delete::<BmcOrder>(&order);
    }
    tx.delete::<EventLog>(&id);
    forget_node(tx, id);
    tx.delete::<Machine>(&id);
}
