//! Components.

use proto_errors::{Error, ErrorCode};

use crate::cluster::command::{DeleteComponent, ReportComponent};
use crate::cluster::entity::Component;
use crate::fields::check_name;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Most components of a cluster; reports of further ones are refused.
const COMPONENTS_MAX: usize = 100_000;

pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportComponent) -> ApplyResult {
    check_name(&op.identifier)?;
    let known = crate::cluster::read::component(tx.tables(), op.kind, &op.identifier).cloned();
    if known.is_none() && tx.tables().table::<Component>().len() >= COMPONENTS_MAX {
        let what = format!("there are {COMPONENTS_MAX} components already");
        return Err(Error::new(ErrorCode::TooMany, what).hint("delete those that are gone"));
    }
    let component = Component {
        id: known.as_ref().map_or(op.id, |component| component.id),
        kind: op.kind,
        identifier: op.identifier.clone(),
        created_at: known
            .as_ref()
            .map_or(tx.now, |component| component.created_at),
        started_at: op.started_at,
        reported_at: tx.now,
        interval_ms: op.interval_ms,
        version: op.version.clone(),
        token: op.token,
    };
    Ok(Reply::Component(tx.save(component)))
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteComponent) -> ApplyResult {
    let old = tx.delete::<Component>(&op.id);
    old.map(Reply::Component)
        .ok_or_else(|| Error::not_found("component", op.id))
}
