//! Registration of a machine by hammer.

use proto_types::{MacAddr, Timestamp};

use crate::machine::apply::bmc_report::await_reading;
use crate::machine::apply::install::next_attempt;
use crate::machine::apply::lifecycle::{came_back, resting_reason, sign_of_life};
use crate::machine::apply::orders::order_life;
use crate::machine::apply::wipe::has_unknown_disk;
use crate::machine::apply::{events, links};
use crate::machine::command::{MachineSeen, RegisterMachine};
use crate::machine::entity::{Bmc, BmcAction, HoldCause, Machine, Phase, Segment};
use crate::machine::phase::{PhaseEvent, enter, transition_of};
use crate::machine::read::cables::concerned::concerned;
use crate::machine::read::match_size;
use crate::meta::label;
use crate::node::apply::take_over::{take_cards, take_over};
use crate::node::apply::unconfirmed::end_unconfirmed;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Takes the inventory that hammer reports after its boot.
pub(crate) fn register(tx: &mut Tx<'_>, op: &RegisterMachine) -> ApplyResult {
    if let Some(partition) = &op.seen_in {
        let seen = MachineSeen {
            id: op.id,
            partition: partition.clone(),
            mac: boot_mac(op),
            seen_at: tx.now,
            stated_at: None,
            to_disk: false,
            relayed: None,
        };
        events::seen(tx, &seen)?;
    }
    let mut machine: Machine = tx.require(&op.id)?;
    end_unconfirmed(tx, &mut machine);
    let is_new_boot = machine.boot_id != op.boot_id;
    let is_first = machine.boot_id.is_empty();
    // Before and after the new inventory: rivals lose or win by what the machine claimed and
    // claims.
    let mut again = concerned(tx.tables(), &machine);
    machine.boot_id.clone_from(&op.boot_id);
    if !may_tell(&machine) {
        return register_without_inventory(tx, machine, is_new_boot);
    }
    take_inventory(&mut machine, op);
    await_reading(tx.tables(), &mut machine);
    take_cards(tx, &machine);
    // Not at a boot request, which any host of the segment can send with any address.
    if is_first {
        take_over(tx, &mut machine);
    }
    links::take(tx, &mut machine, true);
    // An allocated machine keeps the size that its project asked for.
    if machine.allocation.is_none() {
        machine.size = match_size(tx.tables(), &machine.hardware);
        // Set and never cleared here: only the report of a wipe clears it.
        machine.dirty |= has_unknown_disk(&machine, is_new_boot);
    }
    sign_of_life(tx, op.id);
    came_back(&mut machine);
    enter_after_register(&mut machine, is_new_boot, tx.now);
    if machine.phase == Phase::Waiting {
        machine.reason = resting_reason(&machine).to_owned();
    }
    let machine = tx.save(machine);
    again.append(&mut concerned(tx.tables(), &machine));
    links::take_again(tx, again);
    Ok(Reply::Machine(machine))
}

/// `true` if hammer may run on the machine, so that its inventory is believed. On an installed
/// machine, one that is being powered off, or an isolated one, the caller may be the tenant's
/// system.
fn may_tell(machine: &Machine) -> bool {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::TenantPorts | Phase::Running => false,
        Phase::ReclaimPowerOff | Phase::ReclaimPorts | Phase::Held(HoldCause::Ports) => false,
        Phase::Held(_) => machine.segment != Segment::Isolated || machine.links.is_empty(),
        _ => true,
    }
}

/// Takes a registration that is not believed: the machine should not run hammer, or something else
/// uses its identity. The inventory stays as it was.
fn register_without_inventory(
    tx: &mut Tx<'_>,
    mut machine: Machine,
    is_new_boot: bool,
) -> ApplyResult {
    sign_of_life(tx, machine.id);
    let is_installed = matches!(
        machine.phase,
        Phase::BootOrder | Phase::Rebooting | Phase::TenantPorts | Phase::Running
    );
    if is_new_boot && matches!(machine.phase, Phase::BootOrder | Phase::Rebooting) {
        machine.reason = "hammer booted although the machine is installed".into();
    }
    let machine = tx.save(machine);
    if is_new_boot && is_installed {
        // The machine booted from the network instead of its disk: the boot device is set once
        // more. Only for a new boot, as a repeated registration must not pile up orders.
        order_life(tx, &machine, BmcAction::BootDisk)?;
    }
    Ok(Reply::Machine(machine))
}

/// MAC address of the NIC that the machine booted from, by its inventory.
fn boot_mac(op: &RegisterMachine) -> Option<MacAddr> {
    let nics = &op.hardware.nics;
    let boot = nics.iter().find(|nic| nic.boot).or_else(|| nics.first());
    boot.map(|nic| nic.mac)
}

/// Replaces the inventory of a machine.
fn take_inventory(machine: &mut Machine, op: &RegisterMachine) {
    machine.hammer_version.clone_from(&op.hammer_version);
    machine.hardware = op.hardware.clone();
    // From here on only listed NICs may get tickets; see `remember_mac` of the events.
    machine.boot_macs.clear();
    machine.bios = op.bios.clone();
    let mut fru = op.fru.clone();
    fru.fill_from(&machine.fru);
    machine.fru = fru;
    // In band the address is only a hint: what a BMC agent read is never replaced by it.
    if machine.bmc.is_none() && !op.bmc_address.is_empty() {
        machine.bmc = Some(Bmc {
            address: op.bmc_address.clone(),
            mac: op.bmc_mac.clone(),
            version: op.bmc_version.clone(),
            power_state: "on".into(),
            ..Bmc::default()
        });
    }
    if !machine.fru.chassis_part_serial.is_empty() {
        let serial = machine.fru.chassis_part_serial.clone();
        machine
            .meta
            .labels
            .insert(label::MACHINE_CHASSIS.into(), serial);
    }
}

/// Enters the phase that follows a registration.
fn enter_after_register(machine: &mut Machine, is_new_boot: bool, now: Timestamp) {
    if machine.phase == Phase::Installing {
        // A restart in the middle of an installation is a failed attempt; before it began, nothing
        // is lost and the attempt stays.
        let begun = machine.allocation.as_ref().is_some_and(|a| a.install.begun);
        if is_new_boot && begun {
            let why = "the machine restarted during the installation";
            next_attempt(machine, now, why);
        }
        return;
    }
    let event = match machine.dirty {
        true => PhaseEvent::RegisteredDirty,
        false => PhaseEvent::RegisteredClean,
    };
    // The guards of the table keep a held machine where it is while it is isolated, or in a
    // tenant's segment until its switch reports the move.
    if transition_of(machine, event).is_some() {
        enter(machine, event, now, "");
    }
}
