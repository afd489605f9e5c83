//! Components, and which of their reports matter.

use std::sync::Arc;

use proto_types::Timestamp;

use crate::cluster::command::ReportComponent;
use crate::cluster::entity::{COMPONENT_TOUCH_MS, Component, ComponentKind};
use crate::tables::Tables;

/// The component of a kind and name.
pub fn component<'a>(
    tables: &'a Tables,
    kind: ComponentKind,
    identifier: &str,
) -> Option<&'a Arc<Component>> {
    let mut all = tables.all::<Component>();
    all.find(|component| component.kind == kind && component.identifier == identifier)
}

/// `true` if a report has to be written. Components report every few minutes; a mere sign of life
/// is written once in [`COMPONENT_TOUCH_MS`].
pub fn component_report_matters(tables: &Tables, report: &ReportComponent, now: Timestamp) -> bool {
    component(tables, report.kind, &report.identifier).is_none_or(|known| {
        known.started_at != report.started_at
            || known.interval_ms != report.interval_ms
            || known.version != report.version
            || known.token != report.token
            || now.since_ms(known.reported_at) >= COMPONENT_TOUCH_MS
    })
}
