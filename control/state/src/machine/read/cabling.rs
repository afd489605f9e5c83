//! Problems of a machine's cables, for readers outside of the state.

use crate::machine::entity::Machine;
use crate::machine::read::cables::issues;
use crate::tables::Tables;

/// Disagreements of a machine and switches on cables, one line each with both reports.
pub fn cable_issues(tables: &Tables, machine: &Machine) -> Vec<String> {
    let mut lines = issues::disputed(tables, machine);
    lines.append(&mut issues::echoes(tables, machine));
    lines
}

/// The reason why the ports of a machine cannot be moved; `None` means that they can.
pub fn cable_trouble(tables: &Tables, machine: &Machine) -> Option<String> {
    issues::trouble(tables, machine)
}

/// The cables that a machine lacks, as text; `None` means that it has all, that it never
/// registered, or that its partition has no switch.
pub fn missing_cables(tables: &Tables, machine: &Machine) -> Option<String> {
    let is_told = !machine.hardware.nics.is_empty() && issues::is_managed(tables, machine);
    is_told.then(|| issues::missing(tables, machine)).flatten()
}
