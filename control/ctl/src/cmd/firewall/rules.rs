//! `metalmesh firewall rules`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use proto_public::metalmesh::admin::v1::{
    FirewallRules, FirewallRulesOnFirewall, FirewallRulesServiceListRequest,
    FirewallRulesServiceListResponse,
};
use serde_json::{Value, json};

use super::calls::{RuleSetArgs, RuleSetCalls};
use super::differences::{ObjectDifference, between, objects, text};
use super::service::RulesService;
use super::write_note::WriteNote;
use super::{effects, rules_file};
use crate::app::App;
use crate::cmd::given;
use crate::output::{message_json, to_json};

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Write a new revision of a set from a file, and show which rules come and go. With --dry-run
    /// the server checks it, and each firewall that runs says what it would change; nothing changes.
    Apply {
        #[command(flatten)]
        set: RuleSetArgs,
        /// File with the rules, YAML or JSON: `firewall`, `cwnp` and `service` as below
        /// `sources.static` of the firewall agent's file. `-` is stdin.
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Comment of the revision.
        #[arg(long, default_value = "")]
        comment: String,
        /// Refuse unless this revision is in force; 0 means none yet. Default: the one that the
        /// differences are shown against.
        #[arg(long, value_name = "REVISION")]
        expected: Option<u64>,
    },
    /// List the sets of the project, or with --operator those of all projects and of the operator.
    #[command(visible_alias = "list")]
    Ls {
        /// List as an administrator.
        #[arg(long)]
        operator: bool,
    },
    /// Show the rules that are in force, or those of a revision.
    #[command(visible_alias = "describe")]
    Show {
        #[command(flatten)]
        set: RuleSetArgs,
        /// Number of the revision.
        #[arg(long)]
        revision: Option<u64>,
        /// Show what each firewall has counted for the rules in force.
        #[arg(long, conflicts_with = "revision")]
        statistics: bool,
    },
    /// Compare a file with the revision in force; without a file, the revision in force with what
    /// each firewall applied.
    Diff {
        #[command(flatten)]
        set: RuleSetArgs,
        /// File with rules, as for `apply`.
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List the revisions of a set, the newest first.
    History {
        #[command(flatten)]
        set: RuleSetArgs,
    },
    /// Write the rules of an earlier revision as a new one.
    Rollback {
        #[command(flatten)]
        set: RuleSetArgs,
        /// Number of the revision. Default: the one before the revision in force.
        #[arg(long, value_name = "REVISION")]
        to: Option<u64>,
        /// Comment of the new revision.
        #[arg(long, default_value = "")]
        comment: String,
    },
    /// Delete a set with its history. A set that is made again goes on with its number.
    #[command(visible_alias = "delete")]
    Rm {
        #[command(flatten)]
        set: RuleSetArgs,
        /// Refuse unless this revision is in force.
        #[arg(long, value_name = "REVISION")]
        expected: Option<u64>,
    },
}

pub(crate) async fn run(app: &App, command: RulesCommand) -> Result<()> {
    match command {
        RulesCommand::Apply {
            set,
            file,
            comment,
            expected,
        } => {
            let calls = RuleSetCalls::of(app, set).await?;
            apply(app, &calls, &file, WriteNote { comment, expected }).await
        }
        RulesCommand::Ls { operator } => list(app, operator).await,
        RulesCommand::Show {
            set,
            revision,
            statistics,
        } => {
            let calls = RuleSetCalls::of(app, set).await?;
            match revision {
                Some(number) => show(app, &calls.revision(number).await?),
                None if statistics => show_counted(app, &calls).await,
                None => show(app, &given(calls.get().await?.rules)?),
            }
        }
        RulesCommand::Diff { set, file } => {
            let calls = RuleSetCalls::of(app, set).await?;
            match file {
                Some(file) => {
                    let content = rules_file::read(&file)?;
                    let old = calls.find().await?.and_then(|rules| rules.content);
                    print_differences(app, &between(old.as_ref(), &content)?)
                }
                None => diff_applied(app, &calls).await,
            }
        }
        RulesCommand::History { set } => {
            let calls = RuleSetCalls::of(app, set).await?;
            app.output.list(&calls.history(0).await?)
        }
        RulesCommand::Rollback { set, to, comment } => {
            let calls = RuleSetCalls::of(app, set).await?;
            roll_back(app, &calls, to, comment).await
        }
        RulesCommand::Rm { set, expected } => {
            let calls = RuleSetCalls::of(app, set).await?;
            app.output.one(&calls.remove(expected).await?)
        }
    }
}

async fn apply(
    app: &App,
    calls: &RuleSetCalls<'_>,
    file: &std::path::Path,
    mut note: WriteNote,
) -> Result<()> {
    let content = rules_file::read(file)?;
    let old = calls.find().await?;
    // A set that somebody else changes meanwhile is not overwritten: the differences that are shown
    // are those that are made.
    let seen = old.as_ref().map_or(0, |rules| rules.revision);
    note.expected = note.expected.or(Some(seen));
    let old = old.and_then(|rules| rules.content);
    let differences = between(old.as_ref(), &content)?;
    let tried = app.is_dry().then(|| content.clone());
    let rules = calls.set(content, note).await?;
    let effects = match tried {
        Some(content) => Some(calls.effects(content).await?),
        None => None,
    };
    if app.output.is_table() {
        print_differences(app, &differences)?;
        let verb = if app.is_dry() { "would be" } else { "is" };
        outln!("revision {} {verb} in force", rules.revision);
        effects.iter().for_each(|effects| effects::print(effects));
    } else {
        let all: Vec<Value> = differences.iter().map(ObjectDifference::json).collect();
        let mut value = json!({ "rules": rules_json(&rules)?, "differences": all });
        if let Some(effects) = &effects {
            value["firewalls"] = effects::json(effects)?.into();
        }
        app.output.value(&value)?;
    }
    effects::check(&effects.unwrap_or_default())
}

async fn list(app: &App, operator: bool) -> Result<()> {
    let service = RulesService::of(app, operator).await?;
    let request = FirewallRulesServiceListRequest {
        project: service.project.clone(),
    };
    let answer: FirewallRulesServiceListResponse = service.call("List", &request).await?;
    app.output.list(&answer.rules)
}

/// Shows the rules in force with what each firewall has counted for them.
async fn show_counted(app: &App, calls: &RuleSetCalls<'_>) -> Result<()> {
    let found = calls.get().await?;
    let rules = given(found.rules)?;
    let mut all = Vec::new();
    for firewall in &found.firewalls {
        let mut counted = calls.statistics(&firewall.firewall).await?;
        counted.rules.retain(|counter| {
            counter.owner == rules.owner
                && counter.firewall == rules.firewall
                && counter.network == rules.network
        });
        counted.counters.clear();
        counted.status = None;
        all.push(counted);
    }
    if app.output.is_table() {
        show(app, &rules)?;
        for counted in &all {
            outln!("firewall {} ({})", counted.firewall, counted.hostname);
            super::show::print_counters(counted);
        }
        return Ok(());
    }
    let name = "metalmesh.admin.v1.FirewallStatistics";
    let counted = all.iter().map(|counted| message_json(name, counted));
    let counted = counted.collect::<Result<Vec<_>>>()?;
    let value = json!({ "rules": rules_json(&rules)?, "statistics": counted });
    app.output.value(&value)
}

fn show(app: &App, rules: &FirewallRules) -> Result<()> {
    if !app.output.is_table() {
        return app.output.value(&rules_json(rules)?);
    }
    let content = rules.content.clone().unwrap_or_default();
    let objects = objects(&content)?;
    app.output.one(rules)?;
    for (object, text) in objects {
        outln!("{object} {text}");
    }
    Ok(())
}

/// A set with its content as `apply` takes it: without the lists that are empty, which would be
/// refused there.
fn rules_json(rules: &FirewallRules) -> Result<Value> {
    let mut value = to_json(rules)?;
    if let Some(content) = &rules.content {
        value["content"] = serde_json::from_str(&text("FirewallRuleContent", content)?)?;
    }
    Ok(value)
}

fn print_differences(app: &App, differences: &[ObjectDifference]) -> Result<()> {
    if !app.output.is_table() {
        let all = differences.iter().map(ObjectDifference::json).collect();
        return app.output.value(&Value::Array(all));
    }
    for line in differences.iter().flat_map(ObjectDifference::lines) {
        outln!("{line}");
    }
    if differences.is_empty() {
        outln!("no differences");
    }
    Ok(())
}

/// Compares the revision in force with that in the kernel of each firewall.
async fn diff_applied(app: &App, calls: &RuleSetCalls<'_>) -> Result<()> {
    let found = calls.get().await?;
    let rules = given(found.rules)?;
    let mut all = Vec::new();
    for firewall in found.firewalls {
        let applied = firewall.applied_revision;
        let differences = if applied == rules.revision {
            Vec::new()
        } else {
            let old = match applied {
                0 => None,
                number => calls.revision(number).await?.content,
            };
            let new = rules.content.clone().unwrap_or_default();
            between(old.as_ref(), &new)?
        };
        if app.output.is_table() {
            print_applied(&rules, &firewall);
            let lines = differences.iter().flat_map(ObjectDifference::lines);
            lines.for_each(|line| outln!("{line}"));
        }
        all.push(json!({
            "firewall": firewall.firewall,
            "applied_revision": applied,
            "revision": rules.revision,
            "error": firewall.error,
            "refused": firewall.refused.iter().map(|refused| json!({
                "object": refused.object, "field": refused.field,
                "problem": refused.problem, "remedy": refused.remedy,
            })).collect::<Vec<_>>(),
            "differences": differences.iter().map(ObjectDifference::json).collect::<Vec<_>>(),
        }));
    }
    if app.output.is_table() {
        if all.is_empty() {
            outln!("no firewall has these rules");
        }
        return Ok(());
    }
    app.output.value(&Value::Array(all))
}

fn print_applied(rules: &FirewallRules, firewall: &FirewallRulesOnFirewall) {
    let name = match firewall.hostname.is_empty() {
        true => firewall.firewall.clone(),
        false => format!("{} ({})", firewall.firewall, firewall.hostname),
    };
    let applied = match (firewall.reported_at.is_some(), firewall.applied_revision) {
        (false, _) => "it has not reported yet".to_owned(),
        (true, 0) => "none of it is in its kernel".to_owned(),
        (true, number) => format!("revision {number} is in its kernel"),
    };
    outln!(
        "firewall {name}: {applied}, revision {} is in force",
        rules.revision
    );
    if !firewall.error.is_empty() {
        outln!("error: {}", firewall.error);
    }
    for refused in &firewall.refused {
        let (object, field) = (&refused.object, &refused.field);
        outln!(
            "refused: {object}: {field}: {}; {}",
            refused.problem,
            refused.remedy
        );
    }
}

async fn roll_back(
    app: &App,
    calls: &RuleSetCalls<'_>,
    to: Option<u64>,
    comment: String,
) -> Result<()> {
    let current = given(calls.get().await?.rules)?;
    let to = to.unwrap_or_else(|| current.revision.saturating_sub(1));
    let target = calls.revision(to).await?;
    let new = target.content.unwrap_or_default();
    let differences = between(current.content.as_ref(), &new)?;
    let note = WriteNote {
        comment,
        expected: Some(current.revision),
    };
    let rules = calls.roll_back(to, note).await?;
    if !app.output.is_table() {
        return app.output.value(&rules_json(&rules)?);
    }
    print_differences(app, &differences)?;
    let verb = if app.is_dry() { "would be" } else { "is" };
    outln!(
        "revision {} {verb} in force, with the rules of {to}",
        rules.revision
    );
    Ok(())
}
