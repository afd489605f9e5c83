//! Rows of firewalls and of their rules.

use proto_public::metalmesh::admin::v1::{FirewallRules, FirewallStatus};

use super::row;
use crate::output::TableRow;
use crate::text::{age, moment, or_dash};

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
    "health": firewall_health(status).to_owned(),
], wide [
    "name": status.name.clone(),
    "project": status.project.clone(),
    "partition": or_dash(status.partition.clone()),
    "reported": moment(status.reported_at.as_ref()),
    "replaces": or_dash(status.replaces.clone()),
    "replaced by": or_dash(status.replaced_by.clone()),
]);

/// The role, and the place of a standby.
pub(crate) fn firewall_role(status: &FirewallStatus) -> String {
    match status.role.as_str() {
        "standby" => format!("standby, place {}", status.place),
        role => role.to_owned(),
    }
}

/// `ok`, or the reason why the firewall is withdrawn or not healthy.
pub(crate) fn firewall_health(status: &FirewallStatus) -> &str {
    match (status.reason.is_empty(), status.healthy) {
        (false, _) => &status.reason,
        (true, true) => "ok",
        (true, false) => "not healthy",
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
    use proto_public::metalmesh::admin::v1::{FirewallRoutesStatus, FirewallSetStatus};

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
            ..FirewallStatus::default()
        };
        let cells = ["f1", "fw", "active", "0", "8", "1/2", "-", "1.2.3", "ok"];
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
    }
}
