//! Filters of switch reports.

use crate::cluster::read::restored;
use crate::switch::command::ReportSwitch;
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// `true` if a newer report of the switch has overtaken this one.
pub(crate) fn is_stale(switch: &Switch, report: &ReportSwitch) -> bool {
    // Generations are revisions of the replicated log, so that they alone give the order. The term
    // is not compared: control cannot check what the agent claims.
    report.applied_generation < switch.sync.applied_generation
}

/// `true` if a report carries more than a sign of life.
pub fn switch_report_matters(tables: &Tables, report: &ReportSwitch) -> bool {
    let Some(switch) = tables.get::<Switch>(&report.id) else {
        return true;
    };
    if is_stale(switch, report) {
        return false;
    }
    let error = switch.sync.error.as_ref().map(|(_, error)| error);
    let ports_differ = report.ports.iter().any(|(name, seen)| {
        switch
            .ports
            .get(name)
            .and_then(|port| port.observed.as_ref())
            .is_none_or(|known| !known.is_like(seen))
    });
    // After a restore, the first report counts even if it repeats the state: reconciliation waits
    // for one of each switch.
    let is_unheard = restored(tables).is_some_and(|restored| switch.sync.at <= restored.made_at);
    ports_differ
        || is_unheard
        || error != report.error.as_ref()
        || switch.sync.applied_generation != report.applied_generation
        || switch.sync.applied_term != report.applied_term
}
