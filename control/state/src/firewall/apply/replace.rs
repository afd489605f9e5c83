//! A firewall takes the place of another one, without a moment in which neither has it.
//!
//! The steps are for a caller that may be interrupted between any two of them: each can be repeated,
//! and until the last one both firewalls are as they were.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, NetworkId, ProjectId};

use super::carry;
use crate::firewall::command::{ReplaceFirewall, ReplacementStep};
use crate::firewall::read::firewall_allocation;
use crate::firewall::replacement::{firewall_replacement, is_present};
use crate::firewall::role::unready;
use crate::machine::entity::{Allocation, Machine, ReplacedFirewall};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

pub(crate) fn replace(tx: &mut Tx<'_>, op: &ReplaceFirewall) -> ApplyResult {
    let old = own_firewall(tx, op.machine, op.project)?;
    let new = own_firewall(tx, op.by, op.project)?;
    match op.step {
        ReplacementStep::Prepare => prepare(tx, &old, new),
        ReplacementStep::TakeOver => take_over(tx, &old, new),
        ReplacementStep::Undo => undo(tx, &old, new),
    }
}

/// A firewall of the project and its allocation. One of another project is not there.
fn own_firewall(tx: &Tx<'_>, id: MachineId, project: ProjectId) -> Result<FirewallMachine, Error> {
    let allocation = firewall_allocation(tx.tables(), id);
    let own = allocation.filter(|allocation| allocation.project == project);
    let allocation = own
        .cloned()
        .ok_or_else(|| Error::not_found("firewall", id))?;
    let machine: Machine = tx.require(&id)?;
    if machine.is_leaving() {
        let message = format!("firewall \"{id}\" is being freed");
        let error = Error::new(ErrorCode::WrongPhase, message).object("machine", id);
        return Err(error.hint("see the firewalls of the project: metalmesh firewall ls"));
    }
    Ok(FirewallMachine {
        machine,
        allocation,
    })
}

/// A machine that is allocated as a firewall.
struct FirewallMachine {
    machine: Machine,
    allocation: Allocation,
}

impl FirewallMachine {
    /// `true` if another firewall is on record as the replacement of this one's present allocation.
    fn is_replaced_by(&self, new: &Self) -> bool {
        let replaced = new.allocation.replaces.as_ref();
        replaced.is_some_and(|replaced| replaced.allocation == self.allocation.id)
    }

    fn private_networks(&self) -> impl Iterator<Item = &NetworkId> {
        let networks = self.allocation.networks.iter();
        let private = networks.filter(|network| network.kind.is_child());
        private.map(|network| &network.network)
    }
}

fn prepare(tx: &mut Tx<'_>, old: &FirewallMachine, new: FirewallMachine) -> ApplyResult {
    check_pair(old, &new)?;
    check_free(tx, old, &new)?;
    if old.is_replaced_by(&new) {
        // Rules that could not be carried when they were written may be by now.
        return Ok(Reply::Machine(carry::carry_all(tx, new.machine)?));
    }
    let replaced = ReplacedFirewall {
        machine: old.machine.id,
        allocation: old.allocation.id,
        since: old.allocation.senior_since(),
        taken_at: None,
        carried: carry::begin(tx, old.machine.id, new.machine.id)?,
    };
    write(tx, new, Some(replaced))
}

fn take_over(tx: &mut Tx<'_>, old: &FirewallMachine, new: FirewallMachine) -> ApplyResult {
    if !old.is_replaced_by(&new) {
        return Err(not_prepared(old, &new));
    }
    let known = new.allocation.replaces.clone();
    let Some(replaced) = known.filter(|replaced| replaced.taken_at.is_none()) else {
        return Ok(Reply::Machine(tx.save(new.machine)));
    };
    if let Some(reason) = unready(tx.tables(), &new.machine) {
        let rule = format!("it cannot carry the traffic yet: {reason}");
        return Err(refusal(&new, &rule));
    }
    if let Some(reason) = carry::difference(tx.tables(), new.machine.id, &replaced) {
        return Err(refusal(&new, &reason).hint(carry::hint(old.machine.id, new.machine.id)));
    }
    let mut replaced = ReplacedFirewall {
        // The other one may have taken a place itself meanwhile.
        since: old.allocation.senior_since(),
        taken_at: Some(tx.now),
        ..replaced
    };
    carry::note_take_over(tx.tables(), new.machine.id, &mut replaced);
    write(tx, new, Some(replaced))
}

fn undo(tx: &mut Tx<'_>, old: &FirewallMachine, new: FirewallMachine) -> ApplyResult {
    if !old.is_replaced_by(&new) {
        return Ok(Reply::Machine(tx.save(new.machine)));
    }
    carry::take_back(tx, &new.machine)?;
    write(tx, new, None)
}

/// Writes what the new firewall replaces.
fn write(tx: &mut Tx<'_>, new: FirewallMachine, replaces: Option<ReplacedFirewall>) -> ApplyResult {
    let mut machine = new.machine;
    machine.allocation = Some(Box::new(Allocation {
        generation: new.allocation.generation + 1,
        updated_at: tx.now,
        replaces,
        ..new.allocation
    }));
    Ok(Reply::Machine(tx.update(machine)))
}

/// Refuses a pair whose routes do not compete: the traffic of the old one would end with it.
fn check_pair(old: &FirewallMachine, new: &FirewallMachine) -> CheckResult {
    if old.machine.id == new.machine.id {
        return Err(Error::invalid("by", "must be another firewall"));
    }
    if old.machine.partition != new.machine.partition {
        return Err(refusal(new, "it is in another partition"));
    }
    let missing = old.private_networks().find(|network| {
        let mut own = new.private_networks();
        !own.any(|own| own == *network)
    });
    missing.map_or(Ok(()), |network| {
        Err(refusal(new, &format!("it is not in network \"{network}\"")))
    })
}

/// Refuses firewalls that are part of another replacement: who has whose place would not be clear.
fn check_free(tx: &Tx<'_>, old: &FirewallMachine, new: &FirewallMachine) -> CheckResult {
    for (of, firewall) in [(old, "the firewall"), (new, "its replacement")] {
        let other = firewall_replacement(tx.tables(), of.machine.id);
        if let Some((by, _)) = other.filter(|(by, _)| *by != new.machine.id) {
            let rule = format!("{firewall} is being replaced by \"{by}\"");
            return Err(refusal(new, &rule));
        }
        let replaced = of.allocation.replaces.as_ref();
        let present = replaced.filter(|replaced| is_present(tx.tables(), replaced));
        if let Some(third) = present.filter(|third| third.machine != old.machine.id) {
            let rule = format!("{firewall} takes the place of \"{}\"", third.machine);
            return Err(refusal(new, &rule));
        }
    }
    Ok(())
}

fn not_prepared(old: &FirewallMachine, new: &FirewallMachine) -> Error {
    let rule = format!("it was not prepared to replace \"{}\"", old.machine.id);
    refusal(new, &rule)
}

fn refusal(new: &FirewallMachine, rule: &str) -> Error {
    let id = new.machine.id;
    let message = format!("firewall \"{id}\" cannot take that place: {rule}");
    Error::new(ErrorCode::FirewallNotReplaced, message).object("machine", id)
}
