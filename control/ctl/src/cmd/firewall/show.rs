//! `metalmesh firewall show`.

use anyhow::Result;
use clap::Args;
use proto_public::metalmesh::admin::v1::{FirewallRuleCounter, FirewallStatistics};

use super::calls::statistics;
use super::service::RulesService;
use crate::app::App;
use crate::output::print_table;
use crate::text::{moment, or_dash};

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

/// Prints what a firewall has counted, for people.
pub(super) fn print(found: &FirewallStatistics) {
    outln!("firewall {} ({})", found.firewall, found.hostname);
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
