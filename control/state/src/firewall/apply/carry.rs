//! Rules of a firewall that is being replaced, carried over to its replacement.
//!
//! A replacement is installed for up to an hour, and a standby may be prepared days before. A set that
//! is written meanwhile for the firewall that it replaces is written for it too, of both owners: what
//! the operator forbids does not end with the firewall.
//!
//! Invariants:
//! - A set that the replacement has of its own, or that somebody changed there, is never overwritten.
//! - A write for the old firewall is never refused for the sake of its replacement before that has the
//!   place: a project could prepare one that cannot have the operator's rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_firewall::{RuleContent, RuleOwner};
use proto_types::MachineId;

use super::rule_checks::check_content;
use super::{history, rules};
use crate::firewall::entity::{FirewallRuleSet, RuleRevision, RuleSetKey, RuleTarget};
use crate::firewall::read::owners;
use crate::firewall::role::firewall_replacement;
use crate::machine::entity::{CarriedRules, Machine, ReplacedFirewall};
use crate::reply::CheckResult;
use crate::tables::{Tables, Tx};

/// Gives a replacement the sets of the firewall that it is to replace. A set that it has already
/// stays.
pub(super) fn begin(
    tx: &mut Tx<'_>,
    old: MachineId,
    new: MachineId,
) -> Result<BTreeMap<RuleOwner, CarriedRules>, Error> {
    let mut carried = BTreeMap::new();
    for owner in owners() {
        let to = key(new, owner);
        let found = tx.get::<FirewallRuleSet>(&key(old, owner)).cloned();
        let has_own = tx.get::<FirewallRuleSet>(&to).is_some();
        let copy = match &found {
            Some(row) if !has_own => write_copy(tx, row, &to)?,
            _ => 0,
        };
        let original = found.map_or(0, |row| row.current.number);
        carried.insert(owner, CarriedRules { original, copy });
    }
    Ok(carried)
}

/// Carries over what was written for the firewall that a replacement replaces.
pub(super) fn carry_all(tx: &mut Tx<'_>, new: Machine) -> Result<Arc<Machine>, Error> {
    let mut new = new;
    for owner in owners() {
        carry(tx, &mut new, owner)?;
    }
    Ok(tx.save(new))
}

/// Carries over a set that was written just now, if it is of a firewall that is being replaced.
///
/// # Errors
/// The replacement has the place already, and cannot have these rules: they would end with the old
/// firewall.
pub(super) fn follow(tx: &mut Tx<'_>, written: &RuleSetKey) -> CheckResult {
    let RuleTarget::Firewall(old) = written.target else {
        return Ok(());
    };
    let found = firewall_replacement(tx.tables(), old);
    let Some((new, is_taken)) = found.map(|(new, by)| (new, by.taken_at.is_some())) else {
        return Ok(());
    };
    let carried = tx.part(|tx| {
        let mut machine: Machine = tx.require(&new)?;
        carry(tx, &mut machine, written.owner)?;
        tx.save(machine);
        Ok(())
    });
    match carried {
        Ok(()) => Ok(()),
        // The take-over compares the sets, and is refused.
        Err(_) if !is_taken => Ok(()),
        Err(reason) => {
            let message = format!(
                "firewall \"{new}\" has taken the place of \"{old}\", and cannot have the rules \
                 {written}: {}",
                reason.message
            );
            let error = Error::new(ErrorCode::FirewallNotReplaced, message);
            let hint = format!(
                "write the rules of {new} instead: metalmesh firewall rules apply --firewall {new}"
            );
            Err(error.object("machine", new).hint(hint))
        }
    }
}

/// Brings an owner's set of a replacement to the newest revision of the other firewall.
fn carry(tx: &mut Tx<'_>, new: &mut Machine, owner: RuleOwner) -> CheckResult {
    let to = key(new.id, owner);
    let allocation = new.allocation.as_mut();
    let Some(replaced) = allocation.and_then(|allocation| allocation.replaces.as_mut()) else {
        return Ok(());
    };
    if is_carried(tx.tables(), &to, replaced) {
        return Ok(());
    }
    let from = key(replaced.machine, owner);
    let known = replaced.carried.get(&owner).copied().unwrap_or_default();
    if number(tx.tables(), &to) != known.copy {
        let message = format!("{to} were changed too, and are kept");
        return Err(Error::new(ErrorCode::FirewallNotReplaced, message));
    }
    let found = tx.get::<FirewallRuleSet>(&from).cloned();
    let copy = match &found {
        Some(row) => write_copy(tx, row, &to)?,
        None => {
            rules::remove(tx, &to);
            0
        }
    };
    let original = found.map_or(0, |row| row.current.number);
    let carried = CarriedRules { original, copy };
    replaced.carried.insert(owner, carried);
    Ok(())
}

/// The first set that the replacement lacks. `None` means that it has all, or was given other ones of
/// its own when that was the newest.
pub(super) fn difference(
    tables: &Tables,
    new: MachineId,
    replaced: &ReplacedFirewall,
) -> Option<String> {
    let mut owners = owners().into_iter();
    let owner = owners.find(|owner| !is_carried(tables, &key(new, *owner), replaced))?;
    let from = key(replaced.machine, owner);
    let known = replaced.carried.get(&owner).copied().unwrap_or_default();
    Some(format!(
        "the rules {from} are at revision {}, and it knows revision {}",
        number(tables, &from),
        known.original
    ))
}

/// The remedy for [`difference`].
pub(super) fn hint(old: MachineId, new: MachineId) -> String {
    format!(
        "write the same rules for {new} (metalmesh firewall rules apply --firewall {new}), or take it \
         back and begin anew: metalmesh firewall roll {old} --undo"
    )
}

/// Removes the copies that nobody has changed: the next preparation must not find old rules.
pub(super) fn take_back(tx: &mut Tx<'_>, new: MachineId, replaced: &ReplacedFirewall) {
    for (owner, carried) in &replaced.carried {
        let to = key(new, *owner);
        if carried.copy != 0 && number(tx.tables(), &to) == carried.copy {
            rules::remove(tx, &to);
        }
    }
}

/// `true` if nothing was written for the old firewall since its set was carried over, or both sets say
/// the same.
fn is_carried(tables: &Tables, to: &RuleSetKey, replaced: &ReplacedFirewall) -> bool {
    let from = key(replaced.machine, to.owner);
    let known = replaced.carried.get(&to.owner).copied();
    let known = known.unwrap_or_default();
    number(tables, &from) == known.original || content(tables, &from) == content(tables, to)
}

/// Writes a set as a revision of another firewall's; returns its number.
fn write_copy(tx: &mut Tx<'_>, row: &FirewallRuleSet, to: &RuleSetKey) -> Result<u64, Error> {
    // The other firewall may be in other networks, and its shares may be used up.
    check_content(tx.tables(), to, row.project, &row.current.content)?;
    let revision = RuleRevision {
        number: 0,
        at: tx.now,
        comment: format!("copied from {}, revision {}", row.set, row.current.number),
        rolled_back_to: None,
        ..row.current.clone()
    };
    history::write(tx, to, row.project, revision)?;
    Ok(number(tx.tables(), to))
}

fn key(machine: MachineId, owner: RuleOwner) -> RuleSetKey {
    RuleSetKey {
        target: RuleTarget::Firewall(machine),
        owner,
    }
}

/// Number of the revision of a set that is in force. 0 means that there is none.
fn number(tables: &Tables, set: &RuleSetKey) -> u64 {
    let row = tables.get::<FirewallRuleSet>(set);
    row.map_or(0, |row| row.current.number)
}

fn content<'a>(tables: &'a Tables, set: &RuleSetKey) -> Option<&'a RuleContent> {
    let row = tables.get::<FirewallRuleSet>(set);
    row.map(|row| &row.current.content)
}
