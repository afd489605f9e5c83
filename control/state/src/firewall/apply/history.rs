//! Revisions of sets of rules, and how many of them are kept.

use proto_errors::{Error, ErrorCode};
use proto_types::ProjectId;

use crate::firewall::entity::{
    FirewallRuleHistory, FirewallRuleSet, RuleHistoryKey, RuleRevision, RuleSetKey,
};
use crate::firewall::read::{
    CONTENTS_BYTES_MAX, HISTORY_BYTES_MAX, HISTORY_REVISIONS_MAX, history_range,
};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

/// Makes a revision the one in force, and the one before it the newest of the history.
pub(super) fn write(
    tx: &mut Tx<'_>,
    set: &RuleSetKey,
    project: ProjectId,
    mut revision: RuleRevision,
) -> ApplyResult {
    check_contents(tx.tables(), set, project, revision.bytes)?;
    let old = tx.get::<FirewallRuleSet>(set).cloned();
    revision.number = old.as_ref().map_or(0, |old| old.current.number) + 1;
    let mut history_bytes = 0;
    if let Some(old) = old {
        history_bytes = old.history_bytes + old.current.bytes;
        tx.save(FirewallRuleHistory {
            set: set.clone(),
            revision: old.current.clone(),
        });
    }
    let row = FirewallRuleSet {
        set: set.clone(),
        project,
        current: revision,
        history_bytes,
    };
    let history_bytes = history_bytes - trim(tx, &row);
    Ok(Reply::FirewallRuleSet(tx.save(FirewallRuleSet {
        history_bytes,
        ..row
    })))
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

/// Refuses a write that would take more than the owner's share of the project. The shares of
/// operator and project are apart: neither can use up the other's.
fn check_contents(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    bytes: u64,
) -> CheckResult {
    let others = tables.all::<FirewallRuleSet>().filter(|other| {
        other.project == project && other.set.owner == set.owner && other.set != *set
    });
    let used: u64 = others.map(|other| other.current.bytes).sum();
    if used + bytes <= CONTENTS_BYTES_MAX {
        return Ok(());
    }
    let owner = set.owner;
    let message = format!(
        "the {owner}'s firewall rules of project \"{project}\" would have {} bytes, and may have \
         {CONTENTS_BYTES_MAX}",
        used + bytes
    );
    let hint = "use fewer or wider rules, or delete sets that no longer serve: \
                metalmesh firewall rules ls";
    Err(Error::new(ErrorCode::TooMany, message)
        .object("project", project)
        .hint(hint))
}
