//! Writes of sets of rules: each is a new revision.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, NetworkId};

use super::rule_checks::{check_content, project_of};
use super::{carry, history};
use crate::firewall::command::{DeleteFirewallRules, RollBackFirewallRules, SetFirewallRules};
use crate::firewall::entity::{
    FirewallRuleHistory, FirewallRuleSet, FirewallStatus, RuleHistoryKey, RuleRevision, RuleSetKey,
    RuleTarget,
};
use crate::firewall::read::{content_bytes, owners};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Kind of a set of rules in errors.
const KIND: &str = "firewall rules";

pub(crate) fn set(tx: &mut Tx<'_>, op: &SetFirewallRules) -> ApplyResult {
    let project = project_of(tx.tables(), &op.set.target, op.project)?;
    check_expected(tx, &op.set, op.expected)?;
    let mut content = op.content.clone();
    content.name_unnamed();
    check_content(tx.tables(), &op.set, project, &content)?;
    let old = tx.get::<FirewallRuleSet>(&op.set).cloned();
    if let Some(old) = &old
        && old.current.content == content
        && op.comment.is_empty()
        // Written by somebody, a copy that was left over is the firewall's own set from now on.
        && !old.left_over
    {
        // No new revision: a file that is applied again and again would push out the history.
        carry::follow(tx, &op.set)?;
        return Ok(Reply::FirewallRuleSet(old.clone()));
    }
    let bytes = content_bytes(&content);
    let revision = RuleRevision {
        number: 0,
        author: tx.actor.to_owned(),
        at: tx.now,
        comment: op.comment.clone(),
        rolled_back_to: None,
        content,
        bytes,
    };
    let written = history::write(tx, &op.set, project, revision)?;
    carry::follow(tx, &op.set)?;
    Ok(written)
}

pub(crate) fn roll_back(tx: &mut Tx<'_>, op: &RollBackFirewallRules) -> ApplyResult {
    let project = project_of(tx.tables(), &op.set.target, op.project)?;
    check_expected(tx, &op.set, op.expected)?;
    let old: FirewallRuleSet = require(tx, &op.set)?;
    if op.number == old.current.number {
        let rule = format!("{} is in force already", op.number);
        return Err(Error::invalid("revision", rule));
    }
    let key = RuleHistoryKey {
        set: op.set.clone(),
        number: op.number,
    };
    let Some(found) = tx.get::<FirewallRuleHistory>(&key).cloned() else {
        let hint = "see the revisions that are kept: metalmesh firewall rules history";
        return Err(Error::not_found("revision of firewall rules", &key).hint(hint));
    };
    // Networks and addresses may have changed since that content was checked.
    check_content(tx.tables(), &op.set, project, &found.revision.content)?;
    let revision = RuleRevision {
        number: 0,
        author: tx.actor.to_owned(),
        at: tx.now,
        comment: op.comment.clone(),
        rolled_back_to: Some(op.number),
        ..found.revision.clone()
    };
    let written = history::write(tx, &op.set, project, revision)?;
    carry::follow(tx, &op.set)?;
    Ok(written)
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteFirewallRules) -> ApplyResult {
    project_of(tx.tables(), &op.set.target, op.project)?;
    check_expected(tx, &op.set, op.expected)?;
    require(tx, &op.set)?;
    let old = remove(tx, &op.set).ok_or_else(|| Error::not_found(KIND, &op.set))?;
    carry::follow(tx, &op.set)?;
    Ok(Reply::FirewallRuleSet(old))
}

/// Deletes a set, and records that. `None` means that there is none.
pub(super) fn remove(tx: &mut Tx<'_>, set: &RuleSetKey) -> Option<Arc<FirewallRuleSet>> {
    let old = forget(tx, set)?;
    history::record_deletion(tx, &old);
    Some(old)
}

fn require(tx: &Tx<'_>, set: &RuleSetKey) -> Result<FirewallRuleSet, Error> {
    let found = tx.get::<FirewallRuleSet>(set);
    let found = found.map(|found| FirewallRuleSet::clone(found));
    found.ok_or_else(|| Error::not_found(KIND, set))
}

fn check_expected(tx: &Tx<'_>, set: &RuleSetKey, expected: Option<u64>) -> CheckResult {
    let current = tx.get::<FirewallRuleSet>(set);
    let current = current.map_or(0, |found| found.current.number);
    match expected {
        Some(expected) if expected != current => {
            let message =
                format!("{KIND} \"{set}\" are at revision {current} (you saw {expected})");
            Err(Error::new(ErrorCode::Conflict, message).object(KIND, set))
        }
        _ => Ok(()),
    }
}

/// Deletes a set with its history.
fn forget(tx: &mut Tx<'_>, set: &RuleSetKey) -> Option<Arc<FirewallRuleSet>> {
    for key in history::keys(tx.tables(), set) {
        tx.delete::<FirewallRuleHistory>(&key);
    }
    tx.delete::<FirewallRuleSet>(set)
}

/// Deletes the rules of a firewall whose allocation ends: the next one must not get them.
pub(crate) fn forget_firewall(tx: &mut Tx<'_>, machine: MachineId) {
    for owner in owners() {
        let target = RuleTarget::Firewall(machine);
        forget(tx, &RuleSetKey { target, owner });
    }
    tx.delete::<FirewallStatus>(&machine);
}

/// Deletes the rules of a network that is deleted.
pub(crate) fn forget_network(tx: &mut Tx<'_>, network: &NetworkId) {
    for owner in owners() {
        let target = RuleTarget::Network(network.clone());
        forget(tx, &RuleSetKey { target, owner });
    }
}
