//! Labels that administrators give to projects.

use proto_errors::Error;
use proto_types::MachineId;
use uuid::Uuid;

use crate::meta::{Labels, LabelsUpdate};
use crate::pool::command::SetProjectLabels;
use crate::pool::entity::{ALIAS_BYTES_MAX, HostPool, ProjectLabels};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;
use crate::tenancy::entity::Project;

/// Sets the alias and the labels of a project. Hosts that are bound are held against the policies
/// anew.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetProjectLabels) -> ApplyResult {
    tx.tables().require::<Project>(&op.project)?;
    check_alias(tx, op)?;
    let mut labels = Labels::new();
    LabelsUpdate::Replace(op.labels.clone()).apply(&mut labels)?;
    let found = ProjectLabels {
        project: op.project,
        alias: op.alias.clone(),
        labels,
        updated_at: tx.now,
    };
    let is_empty = found.alias.is_none() && found.labels.is_empty();
    recheck_pools(tx);
    if is_empty {
        tx.delete::<ProjectLabels>(&op.project);
        return Ok(Reply::ProjectLabels(found.into()));
    }
    Ok(Reply::ProjectLabels(tx.save(found)))
}

fn check_alias(tx: &Tx<'_>, op: &SetProjectLabels) -> CheckResult {
    let Some(alias) = &op.alias else {
        return Ok(());
    };
    let is_alias = (1..=ALIAS_BYTES_MAX).contains(&alias.len())
        && alias.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_alias {
        let rule = format!("must have 1 to {ALIAS_BYTES_MAX} printable ASCII characters");
        return Err(Error::invalid("alias", rule));
    }
    let mut all = tx.tables().all::<ProjectLabels>();
    let is_taken =
        all.any(|other| other.project != op.project && other.alias.as_ref() == Some(alias));
    match is_taken {
        true => Err(Error::already_exists("project alias", alias)),
        false => Ok(()),
    }
}

/// Marks the pools that have bound hosts: the tick holds these against the policies.
fn recheck_pools(tx: &mut Tx<'_>) {
    let first = MachineId::new(Uuid::nil());
    let pools: Vec<HostPool> = tx
        .tables()
        .all::<HostPool>()
        .filter(|pool| pool.unchecked_from.is_none())
        .map(|pool| HostPool::clone(pool))
        .collect();
    for mut pool in pools {
        pool.unchecked_from = Some(first);
        tx.save(pool);
    }
}
