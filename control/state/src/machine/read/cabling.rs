//! Cables of a machine, as readers ask for them.

use crate::machine::entity::Machine;
use crate::machine::read::cables::issues;
use crate::tables::Tables;

/// Where a machine and switches disagree on a cable, both stories a line.
pub fn cable_issues(tables: &Tables, machine: &Machine) -> Vec<String> {
    let mut lines = issues::disputed(tables, machine);
    lines.append(&mut issues::echoes(tables, machine));
    lines
}

/// Why the ports of a machine cannot be moved as they should; none when they can.
pub fn cable_trouble(tables: &Tables, machine: &Machine) -> Option<String> {
    issues::trouble(tables, machine)
}

/// What is missing of the cables that a machine should have; none when nothing is.
pub fn missing_cables(tables: &Tables, machine: &Machine) -> Option<String> {
    let is_told = !machine.hardware.nics.is_empty() && issues::is_managed(tables, machine);
    is_told.then(|| issues::missing(tables, machine)).flatten()
}
