//! `metalmesh firewall show`.

use anyhow::Result;
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    FirewallRoutesStatus, FirewallRuleCounter, FirewallSetStatus, FirewallStatistics,
    FirewallStatus, FirewallUpdateStatus,
};

use super::calls::statistics;
use super::service::RulesService;
use crate::app::App;
use crate::output::print_table;
use crate::show::{firewall_health, firewall_role};
use crate::text::{age, moment, or_dash};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The firewall, by id or name.
    firewall: String,
    /// Ask as an administrator, about a firewall of any project.
    #[arg(long)]
    operator: bool,
}

pub(crate) async fn run(app: &App, args: ShowArgs) -> Result<()> {
    let firewall = app.machine_id(&args.firewall).await?;
    let service = RulesService::of(app, args.operator).await?;
    let found = statistics(&service, &firewall).await?;
    let name = "metalmesh.admin.v1.FirewallStatistics";
    app.output.message(name, &found, print)
}

/// Prints a firewall and what it has counted, for people.
fn print(found: &FirewallStatistics) {
    outln!("firewall {} ({})", found.firewall, found.hostname);
    found
        .status
        .iter()
        .flat_map(standing)
        .for_each(|line| outln!("{line}"));
    print_counters(found);
}

/// The standing of a firewall, line by line.
fn standing(status: &FirewallStatus) -> Vec<String> {
    let line = |title: &str, value: &str| format!("{:<13}{value}", format!("{title}:"));
    let mut all = vec![
        line("role", &firewall_role(status)),
        line("health", &firewall_health(status)),
        line("agent", &agent(status)),
        line("routes", &routes(status)),
    ];
    let update = status.update.as_ref().map(update);
    all.extend(update.map(|update| line("self-update", &update)));
    all.extend(status.sets.iter().map(|set| line("rules", &rules(set))));
    if !status.replaces.is_empty() {
        let taken = match status.took_over_at {
            Some(at) => format!("{}, whose place it took at {at}", status.replaces),
            None => format!("{}, whose place it has not taken yet", status.replaces),
        };
        all.push(line("replaces", &taken));
    }
    if !status.replaced_by.is_empty() {
        all.push(line("replaced by", &status.replaced_by));
    }
    for fault in &status.faults {
        all.push(line("fault", &format!("{}: {}", fault.code, fault.problem)));
        all.push(line("remedy", &fault.remedy));
    }
    all
}

fn agent(status: &FirewallStatus) -> String {
    let version: &str = match status.agent_version.is_empty() {
        true => "of an unknown version",
        false => &status.agent_version,
    };
    let heard = match &status.heard_at {
        Some(at) => format!("heard {} ago", age(Some(at))),
        None => "never heard".to_owned(),
    };
    let reported = match &status.reported_at {
        Some(at) => format!("last report with news at {at}"),
        None => "no report".to_owned(),
    };
    format!("{version}, {heard}, {reported}")
}

/// The phase of self-update, the wanted version, and the problem.
fn update(update: &FirewallUpdateStatus) -> String {
    let mut text = update.phase.clone();
    if !update.wanted.is_empty() {
        text.push_str(&format!(", wants {}", update.wanted));
    }
    if !update.error.is_empty() {
        text.push_str(&format!(": {}", update.error));
    }
    text
}

/// The place that control orders, and what the firewall has.
fn routes(status: &FirewallStatus) -> String {
    let place = status.place;
    let Some(FirewallRoutesStatus {
        wanted,
        observed,
        error,
    }) = &status.routes
    else {
        return format!("control orders place {place}; the firewall has not said what it has");
    };
    let observed = match observed {
        Some(observed) => format!("its routing daemon has {observed}"),
        None => format!("what its routing daemon has is not known: {error}"),
    };
    format!("control orders place {place}; its agent wants {wanted}, and {observed}")
}

fn rules(set: &FirewallSetStatus) -> String {
    let target = match set.network.is_empty() {
        true => "firewall".to_owned(),
        false => format!("network/{}", set.network),
    };
    let (owner, revision) = (&set.owner, set.revision);
    let applied = match set.applied_revision {
        0 => "none in its kernel".to_owned(),
        applied if applied == revision => "in its kernel".to_owned(),
        applied => format!("revision {applied} in its kernel"),
    };
    format!("{owner} {target}, revision {revision}, {applied}")
}

/// Prints what a firewall has counted, for people.
pub(super) fn print_counters(found: &FirewallStatistics) {
    if found.reported_at.is_none() {
        outln!("control has no counters of it: it has not reported any lately");
        return;
    }
    let (rules, read_at) = (found.rules_in_force, moment(found.read_at.as_ref()));
    outln!("counters of {read_at}, {rules} rules in force on the firewall");
    if !found.counters.is_empty() {
        let rows = found.counters.iter().map(|counter| {
            let (packets, bytes) = (counter.packets.to_string(), counter.bytes.to_string());
            vec![counter.kind.clone(), counter.name.clone(), packets, bytes]
        });
        print_table(&["KIND", "NAME", "PACKETS", "BYTES"], rows);
    }
    if !found.rules.is_empty() {
        let titles = ["ACTION", "RULE", "SET", "PACKETS", "BYTES"];
        print_table(&titles, found.rules.iter().map(row));
    }
    if found.left_out > 0 {
        let left_out = found.left_out;
        // Also beside the rules of one set: they may be of this set, or of others.
        outln!("{left_out} more rules of the firewall have counted, less than those it reports");
    }
}

fn row(counter: &FirewallRuleCounter) -> Vec<String> {
    let rule = match counter.object.is_empty() {
        true => &counter.counter,
        false => &counter.object,
    };
    vec![
        counter.action.clone(),
        rule.clone(),
        or_dash(set(counter)),
        counter.packets.to_string(),
        counter.bytes.to_string(),
    ]
}

/// The set of a rule: `tenant firewall`, `operator network/ID`. Empty if it is of none.
fn set(counter: &FirewallRuleCounter) -> String {
    let owner = &counter.owner;
    match (owner.is_empty(), counter.network.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!("{owner} firewall"),
        (false, false) => format!("{owner} network/{}", counter.network),
    }
}

#[cfg(test)]
mod tests {
    use proto_public::metalmesh::admin::v1::FirewallFault;

    use super::*;

    #[test]
    fn a_claim_stands_beside_what_was_observed() {
        let status = FirewallStatus {
            role: "standby".into(),
            place: 1,
            healthy: true,
            agent_version: "1.2.3".into(),
            routes: Some(FirewallRoutesStatus {
                wanted: 1,
                observed: Some(0),
                error: String::new(),
            }),
            sets: vec![
                FirewallSetStatus {
                    firewall: "f1".into(),
                    owner: "operator".into(),
                    revision: 3,
                    applied_revision: 3,
                    ..FirewallSetStatus::default()
                },
                FirewallSetStatus {
                    network: "private".into(),
                    owner: "tenant".into(),
                    revision: 5,
                    applied_revision: 4,
                    ..FirewallSetStatus::default()
                },
            ],
            replaced_by: "f2".into(),
            update: Some(FirewallUpdateStatus {
                phase: "failed".into(),
                wanted: "1.3.0".into(),
                error: "expiry: it was valid until yesterday".into(),
            }),
            faults: vec![FirewallFault {
                code: "tenant-access".into(),
                problem: "somebody has keys".into(),
                remedy: "metalmesh firewall roll f1".into(),
            }],
            ..FirewallStatus::default()
        };
        assert_eq!(
            standing(&status),
            [
                "role:        standby, place 1",
                "health:      ok, but tenant-access",
                "agent:       1.2.3, never heard, no report",
                "routes:      control orders place 1; its agent wants 1, and its routing daemon has 0",
                "self-update: failed, wants 1.3.0: expiry: it was valid until yesterday",
                "rules:       operator firewall, revision 3, in its kernel",
                "rules:       tenant network/private, revision 5, revision 4 in its kernel",
                "replaced by: f2",
                "fault:       tenant-access: somebody has keys",
                "remedy:      metalmesh firewall roll f1",
            ]
        );
        let silent = FirewallStatus {
            role: "withdrawn".into(),
            reason: "its system does not run yet (phase installing)".into(),
            replaces: "f1".into(),
            ..FirewallStatus::default()
        };
        assert_eq!(
            standing(&silent),
            [
                "role:        withdrawn",
                "health:      its system does not run yet (phase installing)",
                "agent:       of an unknown version, never heard, no report",
                "routes:      control orders place 0; the firewall has not said what it has",
                "replaces:    f1, whose place it has not taken yet",
            ]
        );
    }
}
