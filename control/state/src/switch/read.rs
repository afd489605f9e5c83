//! Filters of switch reports.

use crate::cluster::read::restored;
use crate::switch::command::ReportSwitch;
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// `true` if the switch has reported a newer generation than this report's.
pub(crate) fn is_stale(switch: &Switch, report: &ReportSwitch) -> bool {
    // Generations are revisions of the state, which only grow, so that they alone give the order.
    // The term is not compared: it is what the agent claims, and one with a high term would make
    // every later report stale. `apply` refuses a generation above the state's revision.
    report.applied_generation < switch.sync.applied_generation
}

/// `true` if a report changes more than the time of the switch's last sign of life, so that it is
/// worth a log entry.
pub fn switch_report_matters(tables: &Tables, report: &ReportSwitch) -> bool {
    let Some(switch) = tables.get::<Switch>(&report.id) else {
        // Proposed all the same: `apply` refuses it with the reason.
        return true;
    };
    if is_stale(switch, report) {
        return false;
    }
    let error = switch.sync.error.as_ref().map(|(_, error)| error);
    // `apply` skips ports that the switch has not registered. An agent that reports one would fill
    // the log if it counted here.
    let ports_differ = report.ports.iter().any(|(name, seen)| {
        let port = switch.ports.get(name);
        port.is_some_and(|port| {
            let known = port.observed.as_ref();
            known.is_none_or(|known| !known.is_like(seen))
        })
    });
    // After a restore, the first report counts even if it repeats the state: reconciliation waits
    // for a report of each switch that hears neighbours.
    let is_unheard = restored(tables).is_some_and(|restored| switch.sync.at <= restored.made_at);
    let health_differs = report
        .health
        .as_ref()
        .is_some_and(|health| !health.is_like(&switch.health));
    ports_differ
        || health_differs
        || is_unheard
        || error != report.error.as_ref()
        || switch.sync.applied_generation != report.applied_generation
        || switch.sync.applied_term != report.applied_term
}
