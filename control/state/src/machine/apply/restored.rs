//! Reconciliation of a restored state by its operator.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, SwitchId, Timestamp, Vni};

use crate::cluster::entity::ClusterClock;
use crate::cluster::read::restored;
use crate::levels::{DOUBTED_DISKS, feature_level};
use crate::machine::apply::links;
use crate::machine::apply::rewipe::wipe_or_wait;
use crate::machine::command::ReconcileRestore;
use crate::machine::entity::{Availability, Condition, Machine};
use crate::machine::read::cables::concerned::concerned;
use crate::machine::read::{kept_ports, restored_machines, silent_switches};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::switch::entity::Switch;
use crate::tables::Tx;

/// Ends the hold of a restored state. Machines not proven to be what the backup knows are locked,
/// and their ports stay where they were seen, unless the operator has them judged like others.
pub(crate) fn reconcile(tx: &mut Tx<'_>, op: &ReconcileRestore) -> ApplyResult {
    let Some(backup) = restored(tx.tables()).cloned() else {
        let what = "the state was not restored from a backup, or was reconciled already";
        return Err(Error::new(ErrorCode::NotRestored, what));
    };
    let mut doubted = Vec::new();
    if !op.judge_silent {
        // Ports before locks: a lock takes the machine's word on its cables, and with it the link
        // by which its port is found.
        check_all_switches_told(tx, backup.made_at)?;
        keep_ports(tx, backup.made_at)?;
        doubted = doubted_machines(tx);
        lock_unproven(tx, backup.made_at)?;
    }
    let mut clock: ClusterClock = tx.require(&ClusterClock::ONE.to_owned())?;
    // Silence counts from now: nobody was judged before, and nobody is to be rebooted at once.
    clock.restored = None;
    clock.reconciled_at = Some(tx.now);
    let clock = tx.save(clock);
    // Only now: while the state waits for its operator no machine is rebooted.
    for id in doubted {
        let machine: Machine = tx.require(&id)?;
        wipe_or_wait(tx, machine);
    }
    Ok(Reply::ClusterClock(clock))
}

/// Refuses while a switch has not reported: nobody knows which of its ports would move.
fn check_all_switches_told(tx: &Tx<'_>, made_at: Timestamp) -> CheckResult {
    let silent: Vec<&SwitchId> = silent_switches(tx.tables(), made_at).collect();
    let Some(first) = silent.first() else {
        return Ok(());
    };
    let others = match silent.len() - 1 {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    };
    let what = format!("switch \"{first}\"{others} has not reported since the restore");
    let hint = "wait for its report; or delete it: metalmesh switch rm ID --force; \
                or repeat with --judge-silent, which moves its ports to what the backup knows";
    let error = Error::new(ErrorCode::NotReconciled, what).object("switch", first);
    Err(error.hint(hint))
}

/// Pins ports to the segment in which their switches see them.
fn keep_ports(tx: &mut Tx<'_>, made_at: Timestamp) -> Result<(), Error> {
    let mut kept: BTreeMap<SwitchId, Vec<(String, Vni)>> = BTreeMap::new();
    for found in kept_ports(tx.tables(), made_at) {
        let of_switch = kept.entry(found.switch.id.clone()).or_default();
        of_switch.push((found.port.to_owned(), found.kept));
    }
    for (id, ports) in kept {
        let mut switch: Switch = tx.require(&id)?;
        for (name, vni) in ports {
            if let Some(port) = switch.ports.get_mut(&name) {
                port.kept = Some(vni);
            }
        }
        tx.update(switch);
    }
    Ok(())
}

/// Free machines, whose disks are wiped in a boot that begins after the reconciliation, before anybody
/// gets them. A project may have had each of them since the backup, and nothing proves its disks: that
/// nobody uses it now does not, as a host may be kept for its project with the data, and neither does the
/// hammer of a boot that the backup knows, as the same hammer may have installed a system since.
fn doubted_machines(tx: &Tx<'_>) -> Vec<MachineId> {
    if feature_level(tx.tables()) < DOUBTED_DISKS {
        return Vec::new();
    }
    let machines = tx.tables().all::<Machine>();
    let free = machines.filter(|machine| machine.allocation.is_none());
    free.map(|machine| machine.id).collect()
}

/// Locks machines that a tenant may have got after the backup.
fn lock_unproven(tx: &mut Tx<'_>, made_at: Timestamp) -> Result<(), Error> {
    let unproven: Vec<MachineId> = restored_machines(tx.tables(), made_at)
        .filter(|found| found.must_be_locked())
        .map(|found| found.machine.id)
        .collect();
    for id in unproven {
        let mut machine: Machine = tx.require(&id)?;
        machine.condition = Condition {
            state: Availability::Locked,
            description: format!("nothing proves what it is since the backup of {made_at}"),
            issuer: tx.actor.to_owned(),
        };
        let machine = tx.update(machine);
        // A locked free machine's claims on ports no longer count: rivals may win theirs now.
        let concerned = concerned(tx.tables(), &machine);
        links::take_again(tx, concerned);
    }
    Ok(())
}

/// Lets the ports of a machine follow its phase again: an operator made it available, and so
/// vouches for it.
pub(crate) fn release_ports(tx: &mut Tx<'_>, machine: &Machine) {
    for link in &machine.links {
        let Some(switch) = tx.get::<Switch>(&link.switch) else {
            continue;
        };
        let mut switch = Switch::clone(switch);
        if switch.release_pin(&link.port) {
            tx.update(switch);
        }
    }
}
