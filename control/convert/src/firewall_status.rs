//! Firewalls with their roles, their health, and what they say of their routes, for the wire.

use std::sync::Arc;

use control_state::query::{
    FirewallFault, FirewallRole, firewall_allocation, firewall_faults, firewall_replacement,
    firewall_standing, project_machines, rule_sets_of_firewall,
};
use control_state::{
    EventLog, FirewallRoutes, FirewallRuleSet, FirewallStatus, FirewallUpdate, Machine, RuleTarget,
    Tables,
};
use proto_public::metalmesh::admin::v1 as wire;
use proto_types::{MachineId, ProjectId, Timestamp};

use super::time;

/// The firewalls of a project. `None` means those of all projects.
pub fn firewall_statuses(tables: &Tables, project: Option<ProjectId>) -> Vec<wire::FirewallStatus> {
    let found = |machine: &Arc<Machine>| firewall_status(tables, machine.id);
    match project {
        Some(project) => project_machines(tables, project)
            .filter_map(found)
            .collect(),
        None => tables.all::<Machine>().filter_map(found).collect(),
    }
}

/// A firewall. Its time of the last sign of life is that on record. `None` for a machine that is
/// allocated as none.
pub fn firewall_status(tables: &Tables, id: MachineId) -> Option<wire::FirewallStatus> {
    let machine = tables.get::<Machine>(&id)?;
    let allocation = firewall_allocation(tables, id)?;
    let standing = firewall_standing(tables, id)?;
    let status = tables.get::<FirewallStatus>(&id);
    let status = status.filter(|status| status.allocation == allocation.id);
    let sets = rule_sets_of_firewall(tables, id);
    let replaced = allocation.replaces.as_ref();
    let replacement = firewall_replacement(tables, id);
    let heard_at = tables.get::<EventLog>(&id).map(|log| log.last_event_time);
    Some(wire::FirewallStatus {
        firewall: id.to_string(),
        hostname: allocation.hostname.clone(),
        name: allocation.name.clone(),
        project: allocation.project.to_string(),
        partition: machine
            .partition
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        role: standing.role.as_str().to_owned(),
        place: standing.place,
        reason: standing.reason,
        healthy: standing.ailment.is_none() && standing.role != FirewallRole::Withdrawn,
        freed: machine.is_leaving(),
        sets: sets
            .into_iter()
            .map(|row| set(row, status.map(AsRef::as_ref)))
            .collect(),
        reported_at: status.and_then(|status| time(status.at)),
        heard_at: heard_at.max(status.map(|status| status.at)).and_then(time),
        agent_version: status
            .and_then(|status| status.agent_version.clone())
            .unwrap_or_default(),
        routes: status.and_then(|status| status.routes.as_ref()).map(routes),
        replaces: replaced
            .map(|replaced| replaced.machine.to_string())
            .unwrap_or_default(),
        took_over_at: replaced
            .and_then(|replaced| replaced.taken_at)
            .and_then(time),
        replaced_by: replacement
            .map(|(by, _)| by.to_string())
            .unwrap_or_default(),
        update: status.and_then(|status| status.update.as_ref()).map(update),
        faults: firewall_faults(tables, id)
            .into_iter()
            .map(|found| fault(found, id))
            .collect(),
    })
}

/// Puts the time at which the leader heard a firewall in place of an earlier one.
pub fn with_heard(shown: &mut wire::FirewallStatus, heard: Option<Timestamp>) {
    let newer = heard.and_then(time);
    let order = |at: &Option<prost_types::Timestamp>| at.map(|at| (at.seconds, at.nanos));
    if order(&newer) > order(&shown.heard_at) {
        shown.heard_at = newer;
    }
}

fn set(row: &FirewallRuleSet, status: Option<&FirewallStatus>) -> wire::FirewallSetStatus {
    let (firewall, network) = match &row.set.target {
        RuleTarget::Firewall(id) => (id.to_string(), String::new()),
        RuleTarget::Network(id) => (String::new(), id.to_string()),
    };
    let applied = status.and_then(|status| status.applied_sets.get(&row.set.to_string()));
    wire::FirewallSetStatus {
        firewall,
        network,
        owner: row.set.owner.to_string(),
        revision: row.current.number,
        applied_revision: applied.copied().unwrap_or_default(),
    }
}

fn update(update: &FirewallUpdate) -> wire::FirewallUpdateStatus {
    wire::FirewallUpdateStatus {
        phase: update.phase.clone(),
        wanted: update.wanted.clone().unwrap_or_default(),
        error: update.error.clone().unwrap_or_default(),
    }
}

fn fault(fault: FirewallFault, firewall: MachineId) -> wire::FirewallFault {
    wire::FirewallFault {
        code: fault.code().to_owned(),
        problem: fault.problem(),
        remedy: fault.remedy(firewall),
    }
}

fn routes(routes: &FirewallRoutes) -> wire::FirewallRoutesStatus {
    wire::FirewallRoutesStatus {
        wanted: routes.wanted,
        observed: routes.observed,
        error: routes.error.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sign_of_life_is_shown() {
        let at = |ms| Some(Timestamp::from_ms(ms));
        for (recorded, heard, wanted) in [
            (None, None, None),
            (at(5_000), None, at(5_000)),
            (None, at(7_000), at(7_000)),
            (at(5_000), at(5_001), at(5_001)),
            (at(9_000), at(5_001), at(9_000)),
        ] {
            let mut shown = wire::FirewallStatus {
                heard_at: recorded.and_then(time),
                ..wire::FirewallStatus::default()
            };
            with_heard(&mut shown, heard);
            assert_eq!(
                shown.heard_at,
                wanted.and_then(time),
                "{recorded:?} {heard:?}"
            );
        }
    }
}
