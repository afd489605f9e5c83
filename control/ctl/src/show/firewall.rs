//! Rows of firewalls and of their rules.

use proto_public::metalmesh::admin::v1::{
    AgentRelease, FirewallRelease, FirewallRules, FirewallStatus, Rollout,
};

use super::row;
use crate::output::TableRow;
use crate::text::{age, enum_text, moment, or_dash};

row!(FirewallRules, "metalmesh.admin.v1.FirewallRules", |rules| [
    "TARGET": target(rules),
    "OWNER": rules.owner.clone(),
    "REVISION": rules.revision.to_string(),
    "OBJECTS": rules.objects.to_string(),
    "AUTHOR": rules.author.clone(),
    "AT": moment(rules.at.as_ref()),
    "COMMENT": comment(rules),
], wide [
    "PROJECT": rules.project.clone(),
]);

/// The object that a set is attached to: `firewall/ID` or `network/ID`.
pub(crate) fn target(rules: &FirewallRules) -> String {
    match rules.firewall.is_empty() {
        true => format!("network/{}", rules.network),
        false => format!("firewall/{}", rules.firewall),
    }
}

fn comment(rules: &FirewallRules) -> String {
    match rules.rolled_back_to {
        0 => or_dash(rules.comment.clone()),
        number if rules.comment.is_empty() => format!("back to {number}"),
        number => format!("back to {number}: {}", rules.comment),
    }
}

row!(FirewallStatus, "metalmesh.admin.v1.FirewallStatus", |status| [
    "id": status.firewall.clone(),
    "hostname": or_dash(status.hostname.clone()),
    "role": status.role.clone(),
    "place": status.place.to_string(),
    "observed": observed(status),
    "rules": rules_applied(status),
    "heard": age(status.heard_at.as_ref()),
    "agent": or_dash(status.agent_version.clone()),
    "update": or_dash(update_phase(status)),
    "health": firewall_health(status),
], wide [
    "name": status.name.clone(),
    "project": status.project.clone(),
    "partition": or_dash(status.partition.clone()),
    "reported": moment(status.reported_at.as_ref()),
    "replaces": or_dash(status.replaces.clone()),
    "replaced by": or_dash(status.replaced_by.clone()),
]);

row!(FirewallRelease, "metalmesh.admin.v1.FirewallRelease", |release| [
    "version": release.version.clone(),
    "url": release.url.clone(),
    "set by": or_dash(release.set_by.clone()),
    "age": age(release.set_at.as_ref()),
], wide [
    "head": release.head_digest.clone(),
]);

row!(AgentRelease, "metalmesh.admin.v1.AgentRelease", |release| [
    "version": release.version.clone(),
    "url": release.url.clone(),
], wide [
    "head": release.head_digest.clone(),
]);

row!(Rollout, "metalmesh.admin.v1.Rollout", |rollout| [
    "version": rollout.release.as_ref().map_or_else(|| "-".to_owned(), |release| release.version.clone()),
    "state": enum_text("metalmesh.admin.v1.RolloutState", rollout.state),
    "wave": wave(rollout),
    "since": age(rollout.wave_since.as_ref()),
    "settled": age(rollout.settled_since.as_ref()),
    "age": age(rollout.started_at.as_ref()),
], wide [
    "by": or_dash(rollout.started_by.clone()),
    "url": rollout.release.as_ref().map_or_else(String::new, |release| release.url.clone()),
]);

/// The wave that began last, of all waves: `2/4`.
fn wave(rollout: &Rollout) -> String {
    // The wave of all agents follows after those of the plan.
    format!("{}/{}", rollout.wave, rollout.waves.len() + 1)
}

/// The phase of self-update, and the version that is wanted unless it runs.
fn update_phase(status: &FirewallStatus) -> String {
    let Some(update) = &status.update else {
        return String::new();
    };
    match update.wanted.is_empty() || update.phase == "current" {
        true => update.phase.clone(),
        false => format!("{} {}", update.phase, update.wanted),
    }
}

/// The role, and the place of a standby.
pub(crate) fn firewall_role(status: &FirewallStatus) -> String {
    match status.role.as_str() {
        "standby" => format!("standby, place {}", status.place),
        role => role.to_owned(),
    }
}

/// `ok`, or the reason why the firewall is withdrawn or not healthy, or else its first fault.
pub(crate) fn firewall_health(status: &FirewallStatus) -> String {
    let fault = status.faults.first();
    match (status.reason.is_empty(), status.healthy, fault) {
        (false, _, _) => status.reason.clone(),
        (true, true, Some(fault)) => format!("ok, but {}", fault.code),
        (true, true, None) => "ok".to_owned(),
        (true, false, _) => "not healthy".to_owned(),
    }
}

/// The distance that the firewall read from its routing daemon: an observation beside the place that
/// control orders.
fn observed(status: &FirewallStatus) -> String {
    let routes = status.routes.as_ref();
    let observed = routes.and_then(|routes| routes.observed);
    observed.map_or_else(|| "-".into(), |observed| observed.to_string())
}

/// Number of sets whose newest revision is in the kernel, of all.
fn rules_applied(status: &FirewallStatus) -> String {
    let sets = status.sets.iter();
    let applied = sets.filter(|set| set.applied_revision == set.revision);
    format!("{}/{}", applied.count(), status.sets.len())
}

#[cfg(test)]
mod tests {
    use proto_public::metalmesh::admin::v1::{
        FirewallFault, FirewallRoutesStatus, FirewallSetStatus, FirewallUpdateStatus,
    };

    use super::*;
    use crate::output::to_json;

    #[test]
    fn a_firewall_is_a_row_and_an_object() {
        let set = |applied_revision| FirewallSetStatus {
            firewall: "f1".into(),
            owner: "tenant".into(),
            revision: 2,
            applied_revision,
            ..FirewallSetStatus::default()
        };
        let status = FirewallStatus {
            firewall: "f1".into(),
            hostname: "fw".into(),
            role: "active".into(),
            healthy: true,
            sets: vec![set(2), set(1)],
            agent_version: "1.2.3".into(),
            routes: Some(FirewallRoutesStatus {
                wanted: 0,
                observed: Some(8),
                error: String::new(),
            }),
            update: Some(FirewallUpdateStatus {
                phase: "scheduled".into(),
                wanted: "1.3.0".into(),
                error: String::new(),
            }),
            ..FirewallStatus::default()
        };
        let phase = "scheduled 1.3.0";
        let cells = [
            "f1", "fw", "active", "0", "8", "1/2", "-", "1.2.3", phase, "ok",
        ];
        assert_eq!(status.cells(false), cells);
        assert_eq!(FirewallStatus::titles(false).len(), cells.len());
        assert_eq!(FirewallStatus::titles(true).len(), status.cells(true).len());
        let json = to_json(&status).unwrap();
        assert_eq!(json["role"], "active");
        assert_eq!(json["routes"]["observed"], 8);
        assert_eq!(json["sets"][1]["appliedRevision"], "1");
        // An unknown distance is no distance 0.
        let unknown = FirewallStatus {
            routes: Some(FirewallRoutesStatus {
                error: "vtysh did not answer".into(),
                ..FirewallRoutesStatus::default()
            }),
            ..status
        };
        assert_eq!(unknown.cells(false)[4], "-");
        assert!(to_json(&unknown).unwrap()["routes"]["observed"].is_null());
        let faulty = FirewallStatus {
            update: None,
            faults: vec![FirewallFault {
                code: "tenant-access".into(),
                ..FirewallFault::default()
            }],
            ..unknown
        };
        assert_eq!(faulty.cells(false)[8..], ["-", "ok, but tenant-access"]);
    }
}
