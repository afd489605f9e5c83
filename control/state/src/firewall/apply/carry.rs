//! Rules of a firewall that is being replaced, carried over to its replacement, and back.
//!
//! A replacement is installed for up to an hour, and a standby may be prepared days before. A set that
//! is written meanwhile for the firewall that it replaces is written for it too, of both owners: what
//! the operator forbids does not end with the firewall. Once the replacement has the place, until the
//! other one is freed, a set that both have alike is written for both, whichever of them it is written
//! for: the replacement may fail, or be taken back.
//!
//! Invariants:
//! - A set that the replacement has of its own, or that somebody changed there before it had the
//!   place, is never overwritten, unless both came to say the same later.
//! - A write for one firewall is refused for the sake of the other one only where it would be of no
//!   use: for the old firewall, while control prefers a replacement that has its place. A project
//!   could prepare one that cannot have the operator's rules.
//! - A replacement that may carry traffic keeps its rules when it is taken back.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_firewall::RuleOwner;
use proto_types::MachineId;

use super::rule_checks::check_content;
use super::{history, rules};
use crate::firewall::entity::{FirewallRuleSet, RuleRevision, RuleSetKey, RuleTarget};
use crate::firewall::read::owners;
use crate::firewall::replacement::{
    RuleSetPair, apply_command, firewall_replacement, firewall_set, replaced_firewall, revision_of,
};
use crate::firewall::standby::is_preferred;
use crate::machine::entity::{CarriedRules, Machine, ReplacedFirewall};
use crate::reply::CheckResult;
use crate::tables::{Tables, Tx};

/// A direction in which a set is carried.
type CarryWay = fn(&mut Tx<'_>, &mut Machine, RuleOwner) -> CheckResult;

/// Gives a replacement the sets of the firewall that it is to replace. A set that it has already
/// stays, unless it is the copy that an earlier replacement left.
pub(super) fn begin(
    tx: &mut Tx<'_>,
    old: MachineId,
    new: MachineId,
) -> Result<BTreeMap<RuleOwner, CarriedRules>, Error> {
    let mut carried = BTreeMap::new();
    for owner in owners() {
        let (from, to) = (firewall_set(old, owner), firewall_set(new, owner));
        let present = tx.get::<FirewallRuleSet>(&to);
        let copy = match present.is_some_and(|row| !row.left_over) {
            true => 0,
            false => copy_set(tx, &from, &to)?,
        };
        let known = CarriedRules {
            original: revision_of(tx.tables(), &from),
            copy,
            own: None,
        };
        carried.insert(owner, known);
    }
    Ok(carried)
}

/// Carries over what was written for the firewall that a replacement replaces, and back what was
/// written for the replacement since it has the place.
pub(super) fn carry_all(tx: &mut Tx<'_>, new: Machine) -> Result<Arc<Machine>, Error> {
    let mut new = new;
    for owner in owners() {
        carry(tx, &mut new, owner)?;
        give_back(tx, &mut new, owner)?;
    }
    Ok(tx.save(new))
}

/// Carries a set that was written just now to the other firewall, if it is of one that is being
/// replaced, or that has the place of another one.
///
/// # Errors
/// It was written for a firewall whose replacement carries the traffic, and cannot have these rules:
/// they would be of no use.
pub(super) fn follow(tx: &mut Tx<'_>, written: &RuleSetKey) -> CheckResult {
    let RuleTarget::Firewall(machine) = written.target else {
        return Ok(());
    };
    if replaced_firewall(tx.tables(), machine).is_some() {
        // The write stands without: to take the replacement back is refused then, and a fault names
        // what the other firewall lacks.
        drop(try_carry(tx, machine, written.owner, give_back));
    }
    let found = firewall_replacement(tx.tables(), machine);
    let Some((new, is_taken)) = found.map(|(new, by)| (new, by.taken_at.is_some())) else {
        return Ok(());
    };
    let Err(reason) = try_carry(tx, new, written.owner, carry) else {
        return Ok(());
    };
    // The take-over compares the sets, and is refused. After it the write stands as long as it is for
    // the firewall that carries the traffic: the replacement may be dead.
    if !is_taken || !is_preferred(tx.tables(), new, machine) {
        return Ok(());
    }
    let message = format!(
        "firewall \"{new}\" has taken the place of \"{machine}\", and cannot have the rules {written}: \
         {}",
        reason.message
    );
    let error = Error::new(ErrorCode::FirewallNotReplaced, message).object("machine", new);
    let remedy = apply_command(new, written.owner);
    Err(error.hint(format!("write the rules of {new} instead: {remedy}")))
}

/// Carries a set as a part of the command, which may go on without.
fn try_carry(tx: &mut Tx<'_>, new: MachineId, owner: RuleOwner, way: CarryWay) -> CheckResult {
    tx.part(|tx| {
        let mut machine: Machine = tx.require(&new)?;
        way(tx, &mut machine, owner)?;
        tx.save(machine);
        Ok(())
    })
}

/// Brings an owner's set of a replacement to the newest revision of the other firewall.
fn carry(tx: &mut Tx<'_>, new: &mut Machine, owner: RuleOwner) -> CheckResult {
    let id = new.id;
    let Some(replaced) = replaced_by(new) else {
        return Ok(());
    };
    let pair = RuleSetPair::of(id, replaced, owner);
    if settle(tx.tables(), replaced, &pair) || !pair.is_behind(tx.tables()) {
        return Ok(());
    }
    if revision_of(tx.tables(), &pair.to) != pair.known.copy {
        return Err(kept(&pair.to));
    }
    copy_set(tx, &pair.from, &pair.to)?;
    note(tx.tables(), replaced, &pair);
    Ok(())
}

/// Brings an owner's set of a firewall to the newest revision of the replacement that has its place.
fn give_back(tx: &mut Tx<'_>, new: &mut Machine, owner: RuleOwner) -> CheckResult {
    let id = new.id;
    let Some(replaced) = replaced_by(new) else {
        return Ok(());
    };
    let pair = RuleSetPair::of(id, replaced, owner);
    if settle(tx.tables(), replaced, &pair) || !pair.is_ahead(tx.tables()) {
        return Ok(());
    }
    let is_unchanged = revision_of(tx.tables(), &pair.from) == pair.known.original;
    if !pair.is_shared() || !is_unchanged {
        return Err(kept(&pair.from));
    }
    copy_set(tx, &pair.to, &pair.from)?;
    note(tx.tables(), replaced, &pair);
    Ok(())
}

/// The firewall that a machine replaces, to change what is known of it.
fn replaced_by(new: &mut Machine) -> Option<&mut ReplacedFirewall> {
    let allocation = new.allocation.as_mut()?;
    allocation.replaces.as_mut()
}

/// `true` if both sets say the same. Then they are one from the take-over on, however they came to
/// say it.
fn settle(tables: &Tables, replaced: &mut ReplacedFirewall, pair: &RuleSetPair) -> bool {
    let is_alike = pair.is_alike(tables);
    if is_alike && replaced.taken_at.is_some() {
        note(tables, replaced, pair);
    }
    is_alike
}

/// Notes the revisions of two sets that say the same.
fn note(tables: &Tables, replaced: &mut ReplacedFirewall, pair: &RuleSetPair) {
    let copy = revision_of(tables, &pair.to);
    let known = CarriedRules {
        original: revision_of(tables, &pair.from),
        copy,
        own: replaced.taken_at.map(|_| copy),
    };
    replaced.carried.insert(pair.to.owner, known);
}

/// Notes the revisions that both firewalls have at the take-over.
pub(super) fn note_take_over(tables: &Tables, new: MachineId, replaced: &mut ReplacedFirewall) {
    for pair in RuleSetPair::all(new, replaced) {
        if !settle(tables, replaced, &pair) {
            let known = CarriedRules {
                own: Some(revision_of(tables, &pair.to)),
                ..pair.known
            };
            replaced.carried.insert(pair.to.owner, known);
        }
    }
}

/// The first set that the replacement lacks. `None` means that it has all, or was given other ones of
/// its own when that was the newest.
pub(super) fn difference(
    tables: &Tables,
    new: MachineId,
    replaced: &ReplacedFirewall,
) -> Option<String> {
    let mut pairs = RuleSetPair::all(new, replaced).into_iter();
    let pair = pairs.find(|pair| pair.is_behind(tables))?;
    Some(format!(
        "the rules {} are at revision {}, and it knows revision {}",
        pair.from,
        revision_of(tables, &pair.from),
        pair.known.original
    ))
}

/// The remedy for [`difference`].
pub(super) fn hint(old: MachineId, new: MachineId) -> String {
    format!(
        "write the same rules for {new} (metalmesh firewall rules apply --firewall {new}), or take it \
         back and begin anew: metalmesh firewall roll {old} --undo"
    )
}

/// Ends a replacement. Copies that nobody has changed go, or stay as left over while the replacement
/// may carry traffic: routes move some seconds after the rules, and its agent must not be without.
///
/// # Errors
/// The other firewall would be active without rules that were written for the replacement.
pub(super) fn take_back(tx: &mut Tx<'_>, new: &Machine) -> CheckResult {
    let mut new = new.clone();
    for owner in owners() {
        // Rules that could not be carried back when they were written may be by now.
        drop(tx.part(|tx| give_back(tx, &mut new, owner)));
    }
    let id = new.id;
    let Some(replaced) = replaced_by(&mut new) else {
        return Ok(());
    };
    let pairs = RuleSetPair::all(id, replaced);
    if let Some(pair) = pairs.iter().find(|pair| pair.is_ahead(tx.tables())) {
        return Err(not_given_back(tx.tables(), pair, replaced.machine));
    }
    let may_carry = replaced.taken_at.is_some() || is_preferred(tx.tables(), id, replaced.machine);
    for pair in &pairs {
        let copy = pair.known.copy;
        if copy == 0 || revision_of(tx.tables(), &pair.to) != copy {
            continue;
        }
        match may_carry {
            true => leave(tx, &pair.to)?,
            false => drop(rules::remove(tx, &pair.to)),
        }
    }
    Ok(())
}

/// Marks a copy as left over: the next preparation must not take it for a set of the firewall's own.
fn leave(tx: &mut Tx<'_>, set: &RuleSetKey) -> CheckResult {
    let row: FirewallRuleSet = tx.require(set)?;
    tx.save(FirewallRuleSet {
        left_over: true,
        ..row
    });
    Ok(())
}

/// Makes a set of one firewall say what the other one's says; returns the number of its revision.
fn copy_set(tx: &mut Tx<'_>, from: &RuleSetKey, to: &RuleSetKey) -> Result<u64, Error> {
    if let Some(row) = tx.get::<FirewallRuleSet>(from).cloned() {
        return write_copy(tx, &row, to);
    }
    if tx.get::<FirewallRuleSet>(to).is_some() {
        rules::remove(tx, to);
    }
    Ok(0)
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
    history::write_copy(tx, to, row.project, revision)?;
    Ok(revision_of(tx.tables(), to))
}

fn kept(set: &RuleSetKey) -> Error {
    let message = format!("{set} were changed too, and are kept");
    Error::new(ErrorCode::FirewallNotReplaced, message)
}

fn not_given_back(tables: &Tables, pair: &RuleSetPair, old: MachineId) -> Error {
    let (to, number) = (&pair.to, revision_of(tables, &pair.to));
    let newest = match number {
        0 => "are deleted".to_owned(),
        number => format!("are at revision {number}"),
    };
    let message = format!(
        "firewall \"{old}\" cannot have its place again: the rules {to} {newest}, and could not be \
         carried over to it"
    );
    let remedy = apply_command(old, to.owner);
    Error::new(ErrorCode::FirewallNotReplaced, message)
        .object("machine", old)
        .hint(format!("write the same rules for {old}: {remedy}"))
}
