//! Revisions of sets of rules, and how many of them are kept.

use proto_firewall::RuleContent;
use proto_types::ProjectId;

use super::contents;
use crate::firewall::entity::{
    FirewallRuleHistory, FirewallRuleSet, RuleHistoryKey, RuleRevision, RuleSetKey,
};
use crate::firewall::read::{
    HISTORY_BYTES_MAX, HISTORY_REVISIONS_MAX, content_bytes, history_range, rule_history,
};
use crate::reply::{ApplyResult, Reply};
use crate::tables::{Tables, Tx};

/// Makes a revision the one in force, and the one before it the newest of the history.
pub(super) fn write(
    tx: &mut Tx<'_>,
    set: &RuleSetKey,
    project: ProjectId,
    revision: RuleRevision,
) -> ApplyResult {
    contents::check_project(tx.tables(), set, project, revision.bytes)?;
    write_copy(tx, set, project, revision)
}

/// As [`write`], for a revision of the other firewall of a replacement: the project's contents, which
/// have both as one, do not grow.
pub(super) fn write_copy(
    tx: &mut Tx<'_>,
    set: &RuleSetKey,
    project: ProjectId,
    mut revision: RuleRevision,
) -> ApplyResult {
    contents::check_firewalls(tx.tables(), set, project, revision.bytes)?;
    let old = tx.get::<FirewallRuleSet>(set).cloned();
    let history_bytes = if let Some(old) = old {
        revision.number = old.current.number + 1;
        tx.save(FirewallRuleHistory {
            set: set.clone(),
            revision: old.current.clone(),
        });
        old.history_bytes + old.current.bytes
    } else {
        // Numbers go on after a deletion. If they began anew, a firewall that still has the deleted
        // rules would seem to have these, and a caller that saw the deleted set could overwrite this
        // one.
        let deletion = rule_history(tx.tables(), set).next();
        let (number, bytes) = deletion.map_or((0, 0), |deletion| {
            (deletion.revision.number, deletion.revision.bytes)
        });
        revision.number = number + 1;
        bytes
    };
    let row = FirewallRuleSet {
        set: set.clone(),
        project,
        current: revision,
        history_bytes,
        left_over: false,
    };
    let history_bytes = history_bytes - trim(tx, &row);
    Ok(Reply::FirewallRuleSet(tx.save(FirewallRuleSet {
        history_bytes,
        ..row
    })))
}

/// Records the deletion of a set as the only revision of its history, without rules.
pub(super) fn record_deletion(tx: &mut Tx<'_>, old: &FirewallRuleSet) {
    let content = RuleContent::default();
    let revision = RuleRevision {
        number: old.current.number + 1,
        author: tx.actor.to_owned(),
        at: tx.now,
        comment: "deleted".to_owned(),
        rolled_back_to: None,
        bytes: content_bytes(&content),
        content,
    };
    tx.save(FirewallRuleHistory {
        set: old.set.clone(),
        revision,
    });
}

/// Keys of the earlier revisions of a set, the oldest first.
pub(super) fn keys(tables: &Tables, set: &RuleSetKey) -> Vec<RuleHistoryKey> {
    let found = tables.table::<FirewallRuleHistory>();
    found
        .range(history_range(set))
        .map(|(key, _)| key.clone())
        .collect()
}

/// Removes the oldest revisions of the set that exceed its bounds; returns their bytes. A write
/// never removes the history of another set: what one member of a project writes must not make
/// another's way back disappear.
fn trim(tx: &mut Tx<'_>, set: &FirewallRuleSet) -> u64 {
    let mut rest = set.history_bytes;
    let mut removed = 0;
    let keys = keys(tx.tables(), &set.set);
    let mut number = keys.len();
    for key in keys {
        if number < HISTORY_REVISIONS_MAX && rest <= HISTORY_BYTES_MAX {
            break;
        }
        let gone = tx.delete::<FirewallRuleHistory>(&key);
        let bytes = gone.map_or(0, |gone| gone.revision.bytes);
        rest = rest.saturating_sub(bytes);
        removed += bytes;
        number -= 1;
    }
    removed
}
