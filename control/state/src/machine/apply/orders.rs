//! Orders to BMCs: creation, hand-out, end and expiry.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, OrderId, PartitionId};
use uuid::Uuid;

use crate::cluster::read::{not_reconciled, restored};
use crate::machine::apply::order_outcome::{observe, record_order_failure};
use crate::machine::apply::{bmc_claims, events, reclaim};
use crate::machine::command::{BmcOrderDone, DeleteBmcOrder, OrderBmc, TakeBmcOrder};
use crate::machine::entity::{
    Availability, BmcAction, BmcOrder, BmcStream, EventKind, Machine, ORDER_DEADLINE_MS,
    ORDERS_KEPT_MAX, ORDERS_OPEN_MAX, OrderPurpose, OrderState, Phase,
};
use crate::machine::read::{binding_epoch, is_of_earlier_binding};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Error of a nonce order that ended without the nonce's digest: no machine could join with it.
const NONCE_NOT_TOLD: &str = "the BMC agent did not tell the nonce that it wrote";

/// Creates an order on behalf of a caller of the API.
pub(crate) fn order_by_user(tx: &mut Tx<'_>, op: &OrderBmc) -> ApplyResult {
    let machine: Machine = tx.require(&op.machine)?;
    let is_held = op.project.is_none_or(|project| machine.is_held_by(project));
    if !is_held || op.user.is_some_and(|user| !machine.obeys(user)) {
        return Err(Error::not_found("machine", op.machine));
    }
    order_for_user(tx, op, machine)
}

/// Creates an order on behalf of a caller that may use the machine.
pub(crate) fn order_for_user(tx: &mut Tx<'_>, op: &OrderBmc, mut machine: Machine) -> ApplyResult {
    let is_led = matches!(op.action, BmcAction::LedOn | BmcAction::LedOff);
    // A power order of a user would race with the orders of the reclaim. The LED disturbs nothing.
    let busy = matches!(
        machine.phase,
        Phase::ReclaimPowerOff | Phase::ReclaimPorts | Phase::ReclaimBoot
    );
    if busy && !is_led {
        return Err(crate::machine::apply::lifecycle::wrong_phase(
            &machine,
            "given power or boot orders",
        ));
    }
    // Since the backup the machine may have been given to another tenant.
    if restored(tx.tables()).is_some() && !is_led {
        return Err(not_reconciled().object("machine", op.machine));
    }
    // The LED stays allowed: it helps to find a locked machine in the rack.
    if machine.condition.state == Availability::Locked && !is_led {
        let text = &machine.condition.description;
        let message = format!("machine \"{}\" is locked: {text}", op.machine);
        let error = Error::new(ErrorCode::MachineLocked, message);
        return Err(error.object("machine", op.machine));
    }
    // The order could reach the BMC of another machine, and cut the power of its tenant.
    if let Some(contest) = bmc_claims::contest(&machine) {
        let error = Error::new(ErrorCode::BmcContested, contest).object("machine", op.machine);
        return Err(error);
    }
    let open = open_orders(tx, op.machine);
    // Nonce orders come with boots, not with the user: they do not use up the user's allowance.
    let open = open
        .iter()
        .filter(|order| order.purpose != OrderPurpose::Join);
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
    // Recorded before the reboot happens: its silence and its next boot are then expected.
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

/// Creates an order of the life cycle: the machine's phase waits for its end.
pub(crate) fn order_life(
    tx: &mut Tx<'_>,
    machine: &Machine,
    action: BmcAction,
) -> Result<Arc<BmcOrder>, Error> {
    order(tx, machine, action, OrderPurpose::Life)
}

/// Orders a new nonce into the machine's BMC, with which the machine joins.
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
    // A step of the life cycle belongs to the trace of the call that set the machine on its way,
    // not to the tick or report that happens to trigger it.
    let trace = match purpose {
        OrderPurpose::Life | OrderPurpose::Join => machine.trace.clone(),
        OrderPurpose::User(_) => tx.trace.map(str::to_owned),
    };
    // Derived from the log entry, and not random: every replica applies the entry by itself.
    let id = OrderId::new(tx.derive_uuid());
    let sequence = tx.next_sequence();
    let epoch = binding_epoch(tx.tables(), machine);
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
        epoch,
    }))
}

pub(crate) fn open_orders(tx: &Tx<'_>, machine: MachineId) -> Vec<Arc<BmcOrder>> {
    crate::machine::read::machine_orders(tx.tables(), machine)
        .filter(|order| order.state == OrderState::Open)
        .cloned()
        .collect()
}

/// Cancels all open orders of a machine.
pub(crate) fn cancel_open(tx: &mut Tx<'_>, machine: MachineId) {
    for order in open_orders(tx, machine) {
        end(tx, &order, OrderState::Cancelled, None);
    }
}

/// Cancels the open orders of the life cycle; those of users and for nonces stay.
pub(crate) fn cancel_life(tx: &mut Tx<'_>, machine: MachineId) {
    cancel_where(tx, machine, |purpose| *purpose == OrderPurpose::Life);
}

/// Cancels the open orders of users.
pub(crate) fn cancel_of_users(tx: &mut Tx<'_>, machine: MachineId) {
    cancel_where(tx, machine, |purpose| {
        matches!(purpose, OrderPurpose::User(_))
    });
}

fn cancel_where(tx: &mut Tx<'_>, machine: MachineId, is_meant: impl Fn(&OrderPurpose) -> bool) {
    for order in open_orders(tx, machine) {
        if is_meant(&order.purpose) {
            end(tx, &order, OrderState::Cancelled, None);
        }
    }
}

/// Ends an order, and deletes the oldest ended ones beyond [`ORDERS_KEPT_MAX`].
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

/// Takes an agent's report that an order ended.
pub(crate) fn done(tx: &mut Tx<'_>, op: &BmcOrderDone) -> ApplyResult {
    let order = tx.tables().require::<BmcOrder>(&op.id)?.clone();
    check_partition(&order.partition, &op.partition, order.machine)?;
    if order.state != OrderState::Open {
        // A repeated report, or one after the expiry: the first end stands. The phase went on with
        // it, and a second end would take a step twice.
        return Ok(Reply::BmcOrder(order));
    }
    let mut error = op.error.clone().filter(|error| !error.is_empty());
    let mut order = BmcOrder::clone(&order);
    if order.action == BmcAction::SetNonce && error.is_none() {
        order.nonce.clone_from(&op.nonce);
        error = order.nonce.is_none().then(|| NONCE_NOT_TOLD.to_owned());
    }
    let state = if error.is_some() {
        OrderState::Failed
    } else {
        OrderState::Done
    };
    // The observed power is written before the life cycle goes on, which reads the machine anew.
    let ended = end(tx, &order, state, error);
    observe(tx, &ended, op.power_state.as_deref());
    record_order_failure(tx, &ended);
    reclaim::order_ended(tx, &ended)?;
    Ok(Reply::BmcOrder(ended))
}

/// Assigns an open order to the stream that asks for it.
pub(crate) fn take(tx: &mut Tx<'_>, op: &TakeBmcOrder) -> ApplyResult {
    let order = tx.tables().require::<BmcOrder>(&op.id)?.clone();
    check_partition(&order.partition, &op.partition, order.machine)?;
    let refuse = |why: &str| {
        let message = format!("task \"{}\" {why}", op.id);
        Err(Error::new(ErrorCode::Conflict, message).object("task", op.id))
    };
    if order.state != OrderState::Open {
        return refuse("is over");
    }
    // That agent cannot be told the epoch: it must not get the order at all.
    if is_of_earlier_binding(tx.tables(), &order) {
        return refuse("is of an earlier binding of its machine");
    }
    // All open orders of a machine go to one stream: two agents would break their sequence, and
    // power a machine on before its boot device is set.
    let elsewhere = open_orders(tx, order.machine).into_iter().any(|order| {
        let holder = order.taken_by.filter(|holder| *holder != op.stream);
        holder.is_some_and(|holder| is_open(holder, op.stream.node, &op.open))
    });
    if elsewhere {
        return refuse("is assigned to another stream, or an order before it is");
    }
    let mut order = BmcOrder::clone(&order);
    order.taken_by = Some(op.stream);
    Ok(Reply::BmcOrder(tx.save(order)))
}

/// `true` if a stream may still be open. A control node knows the ends of its own streams only: one
/// of another node counts as open, and its orders wait for their deadline.
fn is_open(stream: BmcStream, node: u64, open_there: &BTreeSet<Uuid>) -> bool {
    stream.node != node || open_there.contains(&stream.id)
}

/// Ends an order whose deadline passed without an answer.
pub(crate) fn expire(tx: &mut Tx<'_>, order: &BmcOrder) -> Result<(), Error> {
    // Orders of a contested BMC are never sent: say that, and not that the agent is slow.
    let machine = tx.get::<Machine>(&order.machine);
    let contest = machine.and_then(|machine| bmc_claims::contest(machine));
    let error = contest.unwrap_or_else(|| "the BMC agent did not answer in time".to_owned());
    let ended = end(tx, order, OrderState::Expired, Some(error));
    record_order_failure(tx, &ended);
    reclaim::order_ended(tx, &ended)
}

/// Refuses an agent of another partition: one compromised agent must not end orders elsewhere.
fn check_partition(
    of_order: &PartitionId,
    of_agent: &PartitionId,
    machine: MachineId,
) -> CheckResult {
    if of_order == of_agent {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::MachineForeign,
        format!("machine \"{machine}\" is not in partition \"{of_agent}\""),
    )
    .object("machine", machine))
}

/// Cancels an open order of a user, or deletes an ended order.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteBmcOrder) -> ApplyResult {
    let Some(order) = tx.get::<BmcOrder>(&op.id).cloned() else {
        return Err(Error::not_found("task", op.id));
    };
    match (order.state, &order.purpose) {
        // A phase or a boot waits for its end: without it the machine would be stuck.
        (OrderState::Open, OrderPurpose::Life | OrderPurpose::Join) => {
            let message = format!(
                "machine \"{}\" waits for task \"{}\", {}",
                order.machine,
                op.id,
                order.action.as_str()
            );
            let error = Error::new(ErrorCode::StillInUse, message).object("task", op.id);
            Err(error.hint("it ends by itself, at the latest at its deadline"))
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
