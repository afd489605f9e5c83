//! Orders to BMCs, and what their ends mean.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, OrderId, PartitionId};
use uuid::Uuid;

use crate::cluster::read::{not_reconciled, restored};
use crate::machine::apply::{bmc_claims, events, reclaim};
use crate::machine::command::{
    BmcOrderDone, DeleteBmcOrder, KeepBmcAccess, OrderBmc, ReportBmc, TakeBmcOrder,
};
use crate::machine::entity::{
    Availability, BmcAction, BmcOrder, BmcStream, EventKind, Machine, ORDER_DEADLINE_MS,
    ORDERS_KEPT_MAX, ORDERS_OPEN_MAX, OrderPurpose, OrderState, Phase,
};
use crate::machine::read::{bmc_of, has_bmc_room};
use crate::reply::Reply;
use crate::tables::Tx;

/// The end of an order for a nonce with which nobody could join.
const UNTOLD_NONCE: &str = "the BMC agent did not tell what it wrote";

pub(crate) fn order_by_user(tx: &mut Tx<'_>, op: &OrderBmc) -> Result<Reply, Error> {
    let mut machine: Machine = tx.require(&op.machine)?;
    let owner = machine.allocation.as_ref().map(|a| a.project);
    if op.project.is_some() && owner != op.project {
        return Err(Error::not_found("machine", op.machine));
    }
    let is_led = matches!(op.action, BmcAction::LedOn | BmcAction::LedOff);
    let busy = matches!(
        machine.phase,
        Phase::ReclaimPowerOff | Phase::ReclaimPorts | Phase::ReclaimBoot
    );
    if busy && !is_led {
        return Err(crate::machine::apply::lifecycle::wrong_phase(
            &machine,
            "ordered about",
        ));
    }
    // The machine may be somebody else's by now.
    if restored(tx.tables()).is_some() && !is_led {
        return Err(not_reconciled().object("machine", op.machine));
    }
    // A lamp helps to find the machine that somebody looks at.
    if machine.condition.state == Availability::Locked && !is_led {
        let text = &machine.condition.description;
        let message = format!("machine \"{}\" is locked: {text}", op.machine);
        let error = Error::new(ErrorCode::MachineLocked, message);
        return Err(error.object("machine", op.machine));
    }
    if let Some(contest) = bmc_claims::contest(&machine) {
        let error = Error::new(ErrorCode::BmcContested, contest).object("machine", op.machine);
        return Err(error);
    }
    let open = open_orders(tx, op.machine);
    let open = open.iter().filter(|it| it.purpose != OrderPurpose::Join);
    let open = open.count();
    if open >= ORDERS_OPEN_MAX {
        return Err(Error::new(
            ErrorCode::TooMany,
            format!("machine \"{}\" has {open} open orders already", op.machine),
        )
        .object("machine", op.machine)
        .hint("wait until its BMC has carried them out"));
    }
    let reboots = matches!(
        op.action,
        BmcAction::PowerOff | BmcAction::PowerReset | BmcAction::PowerCycle
    );
    if reboots {
        let now = tx.now;
        events::record(
            tx,
            op.machine,
            EventKind::PlannedReboot,
            op.action.as_str(),
            now,
        );
    }
    if is_led {
        machine.led.description.clone_from(&op.description);
        tx.save(machine.clone());
    }
    let purpose = OrderPurpose::User(tx.actor.to_owned());
    order(tx, &machine, op.action, purpose).map(Reply::BmcOrder)
}

/// An order of the life cycle: the phase waits for it.
pub(crate) fn order_life(
    tx: &mut Tx<'_>,
    machine: &Machine,
    action: BmcAction,
) -> Result<Arc<BmcOrder>, Error> {
    order(tx, machine, action, OrderPurpose::Life)
}

/// Has the machine's BMC hold something new, with which it joins.
pub(crate) fn order_nonce(tx: &mut Tx<'_>, machine: &Machine) -> Result<Arc<BmcOrder>, Error> {
    order(tx, machine, BmcAction::SetNonce, OrderPurpose::Join)
}

fn order(
    tx: &mut Tx<'_>,
    machine: &Machine,
    action: BmcAction,
    purpose: OrderPurpose,
) -> Result<Arc<BmcOrder>, Error> {
    let partition = machine.partition.clone().ok_or_else(|| {
        Error::new(
            ErrorCode::NoBmc,
            format!("machine \"{}\" is in no partition", machine.id),
        )
        .object("machine", machine.id)
    })?;
    // Steps of the life cycle follow from the call that set the machine on its way.
    let trace = match purpose {
        OrderPurpose::Life | OrderPurpose::Join => machine.trace.clone(),
        OrderPurpose::User(_) => tx.trace.map(str::to_owned),
    };
    let id = OrderId::new(tx.derive_uuid());
    let sequence = tx.next_sequence();
    Ok(tx.save(BmcOrder {
        id,
        machine: machine.id,
        partition,
        action,
        purpose,
        sequence,
        state: OrderState::Open,
        created_at: tx.now,
        deadline: tx.now.plus_ms(ORDER_DEADLINE_MS),
        finished_at: None,
        error: None,
        trace,
        taken_by: None,
        nonce: None,
    }))
}

pub(crate) fn open_orders(tx: &Tx<'_>, machine: MachineId) -> Vec<Arc<BmcOrder>> {
    crate::machine::read::machine_orders(tx.tables(), machine)
        .filter(|order| order.state == OrderState::Open)
        .cloned()
        .collect()
}

/// Overtaken by a change of plan.
pub(crate) fn cancel_open(tx: &mut Tx<'_>, machine: MachineId) {
    for order in open_orders(tx, machine) {
        end(tx, &order, OrderState::Cancelled, None);
    }
}

/// Cancels only what the life cycle ordered.
pub(crate) fn cancel_life(tx: &mut Tx<'_>, machine: MachineId) {
    for order in open_orders(tx, machine) {
        if order.purpose == OrderPurpose::Life {
            end(tx, &order, OrderState::Cancelled, None);
        }
    }
}

fn end(
    tx: &mut Tx<'_>,
    order: &BmcOrder,
    state: OrderState,
    error: Option<String>,
) -> Arc<BmcOrder> {
    let ended = BmcOrder {
        state,
        error,
        finished_at: Some(tx.now),
        ..order.clone()
    };
    let ended = tx.save(ended);
    let old: Vec<_> = crate::machine::read::machine_orders(tx.tables(), order.machine)
        .filter(|order| order.state != OrderState::Open)
        .map(|order| order.id)
        .collect();
    for id in old.iter().take(old.len().saturating_sub(ORDERS_KEPT_MAX)) {
        tx.delete::<BmcOrder>(id);
    }
    ended
}

pub(crate) fn done(tx: &mut Tx<'_>, op: &BmcOrderDone) -> Result<Reply, Error> {
    let order = tx.tables().require::<BmcOrder>(&op.id)?.clone();
    check_partition(&order.partition, &op.partition, order.machine)?;
    if order.state != OrderState::Open {
        // Told twice, or too late: the first end stands.
        return Ok(Reply::BmcOrder(order));
    }
    let mut error = op.error.clone().filter(|error| !error.is_empty());
    let mut order = BmcOrder::clone(&order);
    if order.action == BmcAction::SetNonce && error.is_none() {
        order.nonce.clone_from(&op.nonce);
        error = order.nonce.is_none().then(|| UNTOLD_NONCE.to_owned());
    }
    let state = if error.is_some() {
        OrderState::Failed
    } else {
        OrderState::Done
    };
    let ended = end(tx, &order, state, error);
    observe(tx, &ended, op.power_state.as_deref());
    tell_failure(tx, &ended);
    reclaim::order_ended(tx, &ended)?;
    Ok(Reply::BmcOrder(ended))
}

pub(crate) fn take(tx: &mut Tx<'_>, op: &TakeBmcOrder) -> Result<Reply, Error> {
    let order = tx.tables().require::<BmcOrder>(&op.id)?.clone();
    check_partition(&order.partition, &op.partition, order.machine)?;
    let refuse = |why: &str| {
        let message = format!("task \"{}\" {why}", op.id);
        Err(Error::new(ErrorCode::Conflict, message).object("task", op.id))
    };
    if order.state != OrderState::Open {
        return refuse("is over");
    }
    // All open orders of one machine go to one stream, which keeps their sequence.
    let elsewhere = open_orders(tx, order.machine).into_iter().any(|order| {
        let holder = order.taken_by.filter(|holder| *holder != op.stream);
        holder.is_some_and(|holder| is_open(holder, op.stream.node, &op.open))
    });
    if elsewhere {
        return refuse("is carried out for another stream, or one before it is");
    }
    let mut order = BmcOrder::clone(&order);
    order.taken_by = Some(op.stream);
    Ok(Reply::BmcOrder(tx.save(order)))
}

/// `true` if a stream may still be read: only its own control node knows that it ended.
fn is_open(stream: BmcStream, node: u64, open_there: &BTreeSet<Uuid>) -> bool {
    stream.node != node || open_there.contains(&stream.id)
}

/// Nobody answered in time.
pub(crate) fn expire(tx: &mut Tx<'_>, order: &BmcOrder) -> Result<(), Error> {
    let machine = tx.get::<Machine>(&order.machine);
    let contest = machine.and_then(|machine| bmc_claims::contest(machine));
    let error = contest.unwrap_or_else(|| "the BMC agent did not answer in time".to_owned());
    let ended = end(tx, order, OrderState::Expired, Some(error));
    tell_failure(tx, &ended);
    reclaim::order_ended(tx, &ended)
}

/// Who ordered reads in the machine's events why it did not happen, and so does whoever looks why
/// it does not join. What the life cycle ordered shows in the machine's reason.
fn tell_failure(tx: &mut Tx<'_>, order: &BmcOrder) {
    let is_told = order.purpose != OrderPurpose::Life;
    if let (true, Some(error)) = (is_told, &order.error) {
        let message = format!("{} failed: {error}", order.action.as_str());
        events::record_failure(tx, order.machine, &message);
    }
}

fn check_partition(
    of_order: &PartitionId,
    of_agent: &PartitionId,
    machine: MachineId,
) -> Result<(), Error> {
    if of_order == of_agent {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::MachineForeign,
        format!("machine \"{machine}\" is not in partition \"{of_agent}\""),
    )
    .object("machine", machine))
}

fn observe(tx: &mut Tx<'_>, order: &BmcOrder, power_state: Option<&str>) {
    let Some(mut machine) = tx.get::<Machine>(&order.machine).map(|m| Machine::clone(m)) else {
        return;
    };
    if let (Some(bmc), Some(power)) = (&mut machine.bmc, power_state.filter(|p| !p.is_empty())) {
        bmc.power_state = power.to_owned();
    }
    if order.state == OrderState::Done {
        match order.action {
            BmcAction::LedOn => machine.led.value = "on".into(),
            BmcAction::LedOff => machine.led.value = "off".into(),
            _ => {}
        }
    }
    tx.save(machine);
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteBmcOrder) -> Result<Reply, Error> {
    let Some(order) = tx.get::<BmcOrder>(&op.id).cloned() else {
        return Err(Error::not_found("task", op.id));
    };
    match (order.state, &order.purpose) {
        (OrderState::Open, OrderPurpose::Life | OrderPurpose::Join) => {
            let message = format!(
                "machine \"{}\" waits for task \"{}\", {}",
                order.machine,
                op.id,
                order.action.as_str()
            );
            let error = Error::new(ErrorCode::StillInUse, message).object("task", op.id);
            Err(error.hint("it ends by itself, at the latest when its time is over"))
        }
        (OrderState::Open, OrderPurpose::User(_)) => {
            end(tx, &order, OrderState::Cancelled, None);
            Ok(Reply::BmcOrder(order))
        }
        _ => {
            tx.delete::<BmcOrder>(&op.id);
            Ok(Reply::BmcOrder(order))
        }
    }
}

pub(crate) fn keep_access(tx: &mut Tx<'_>, op: &KeepBmcAccess) -> Result<Reply, Error> {
    let mut machine: Machine = tx.require(&op.machine)?;
    machine.bmc_access = Some(op.access.clone());
    tx.save(machine);
    Ok(Reply::None)
}

pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportBmc) -> Result<Reply, Error> {
    let mut created = Vec::new();
    for reading in &op.readings {
        let Some(id) = reading.machine else { continue };
        let known = tx
            .get::<Machine>(&id)
            .map(|machine| Machine::clone(machine));
        let is_new = known.is_none();
        if is_new && !has_bmc_room(tx.tables(), &op.partition, &reading.address) {
            continue;
        }
        let mut machine =
            known.unwrap_or_else(|| Machine::seen(id, Some(op.partition.clone()), tx.now));
        // A machine is where its BMC agent is; another partition's agent has no say.
        if machine
            .partition
            .get_or_insert_with(|| op.partition.clone())
            != &op.partition
        {
            continue;
        }
        if bmc_claims::take(&mut machine, reading, tx.now) {
            tx.save(machine);
            continue;
        }
        let mut bmc = bmc_of(reading);
        bmc.updated_at = bmc.updated_at.min(tx.now);
        if let (Some(old), true) = (&machine.bmc, bmc.address.is_empty()) {
            bmc.address.clone_from(&old.address);
        }
        if let (Some(old), Some(_)) = (&machine.bmc, &bmc.error) {
            // Unreadable now: keep what was known.
            bmc = crate::machine::entity::Bmc {
                error: bmc.error,
                updated_at: bmc.updated_at,
                ..old.clone()
            };
        }
        machine.bmc = Some(bmc);
        machine.fru.fill_from(&reading.fru);
        for (mine, theirs) in [
            (&mut machine.bios.version, &reading.bios_version),
            (&mut machine.bios.vendor, &reading.bios_vendor),
            (&mut machine.led.value, &reading.led_state),
        ] {
            if !theirs.is_empty() {
                mine.clone_from(theirs);
            }
        }
        if is_new {
            tx.create(machine)?;
            created.push(id);
        } else {
            tx.save(machine);
        }
    }
    Ok(Reply::MachineIds(created))
}
