//! Which reports of switches matter.

use crate::cluster::read::restored;
use crate::switch::command::ReportSwitch;
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// Whether a report was under way when a newer one came: it says what was, and nothing of now.
pub(crate) fn is_stale(switch: &Switch, report: &ReportSwitch) -> bool {
    // Generations are revisions of the one log, so that they alone say what came later; a term is
    // the agent's word.
    report.applied_generation < switch.sync.applied_generation
}

/// Whether a report says anything new about the switch, beside that it is there.
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
    // A restored state is compared with what switches say now: that nothing changed is news, too.
    let is_unheard = restored(tables).is_some_and(|restored| switch.sync.at <= restored.made_at);
    ports_differ
        || is_unheard
        || error != report.error.as_ref()
        || switch.sync.applied_generation != report.applied_generation
        || switch.sync.applied_term != report.applied_term
}
