//! Handover of the ports from hammer to the tenant, only once hammer is known to be gone.
//!
//! One of these must be observed: hammer's last event, the next boot at the boot server, the phone
//! home of the installed system, or the BMC's confirmation that the power was cut. A timeout proves
//! nothing: a hung hammer would be left running in the tenant's segment.

use proto_errors::Error;

use crate::machine::apply::orders::{cancel_life, open_orders, order_life};
use crate::machine::entity::{
    Availability, BmcAction, BmcOrder, Machine, OrderPurpose, OrderState, Phase, Segment,
};
use crate::machine::phase::STEP_ATTEMPTS_MAX;
use crate::tables::Tx;

/// Power-cycles a machine whose hammer did not report that it left. Its ports stay in the
/// provisioning segment until the BMC confirms.
pub(crate) fn chase(tx: &mut Tx<'_>, mut machine: Machine) -> Result<(), Error> {
    // The tick calls this again and again after the deadline: an attempt under way is not doubled.
    let is_cycling = open_orders(tx, machine.id)
        .iter()
        .any(|order| order.purpose == OrderPurpose::Life && order.action == BmcAction::PowerCycle);
    let is_locked = machine.condition.state == Availability::Locked;
    if is_cycling || is_locked || machine.partition.is_none() {
        return Ok(());
    }
    // The guard of the table lets one call more than the attempts through, which leaves the reason;
    // later ticks find the attempts used up and write nothing.
    machine.step_attempts += 1;
    if machine.step_attempts > STEP_ATTEMPTS_MAX {
        machine.reason = format!(
            "hammer did not say that it left, and the BMC did not power-cycle the machine in \
             {STEP_ATTEMPTS_MAX} attempts: its ports stay in the provisioning segment"
        );
        tx.save(machine);
        return Ok(());
    }
    machine.reason = "hammer did not say that it left: the BMC power-cycles the machine".into();
    let machine = tx.save(machine);
    // The boot device comes first: power-cycled with the old one, the machine would boot hammer.
    cancel_life(tx, machine.id);
    order_life(tx, &machine, BmcAction::BootDisk)?;
    order_life(tx, &machine, BmcAction::PowerCycle)?;
    Ok(())
}

/// Hands the ports over after an order that cut the power and so ended hammer, whoever gave it.
pub(crate) fn after_power(tx: &mut Tx<'_>, order: &BmcOrder) {
    let cuts = matches!(
        order.action,
        BmcAction::PowerOff | BmcAction::PowerReset | BmcAction::PowerCycle
    );
    if !cuts || order.state != OrderState::Done {
        return;
    }
    let machine = tx.get::<Machine>(&order.machine);
    let left = machine.filter(|machine| {
        // An order from before this phase may have been carried out while hammer was still
        // installing, and a hammer that booted since would be running.
        machine.phase == Phase::Rebooting && order.created_at >= machine.since
    });
    let Some(mut machine) = left.map(|machine| Machine::clone(machine)) else {
        return;
    };
    machine.segment = Segment::Tenant;
    machine.reason.clear();
    tx.save(machine);
}
