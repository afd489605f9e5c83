//! `metalmesh policy`.

mod decisions;
mod lint;
mod lint_rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use control_policy::{Checked, Compiled, SitePolicies, SitePolicy, check};
use proto_public::metalmesh::admin::v1::{
    Policy, PolicyServiceGetRequest, PolicyServiceListRequest, PolicyServiceRemoveRequest,
    PolicyServiceSetRequest,
};
use serde_json::json;

use super::given;
use crate::app::App;
use crate::files;
use crate::output::{OutputFormat, print_table};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Compile policies, run their tests and try them with sample callers; needs no server.
    ///
    /// Exits with 1 at the first fault, and prints its file, line and column.
    Check {
        /// Files with the policies.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Show which callers would gain or lose methods by policies, before they are in force.
    ///
    /// Each method that a policy names is called by each sample caller, without a server's objects.
    /// Rules about the content of requests are covered by the policy's own tests instead.
    Diff {
        /// Policies to add to those in force, or to replace those of the same name.
        files: Vec<PathBuf>,
        /// Policy to remove. Repeatable.
        #[arg(long = "rm", value_name = "NAME")]
        removed: Vec<String>,
        #[command(flatten)]
        against: PolicyBaseArgs,
    },
    /// Show which rule decides a method for a sample caller, or for all of them.
    Explain(decisions::PolicyExplainArgs),
    /// Compare a policy file of Ironic (oslo.policy) with Ironic's defaults; needs no server.
    ///
    /// Sample callers and objects show who gains and who loses which call. A rule that gives a
    /// project what belongs to others is dangerous: the command exits with 1 unless
    /// --allow-dangerous names it.
    Lint(lint::PolicyLintArgs),
    /// Put a policy in force, or replace it.
    ///
    /// The policy has the name of its file. A broken policy is refused, and the previous one stays in
    /// force. With --dry-run the command shows which callers would gain or lose methods.
    Set {
        /// File with the policy; - is stdin.
        file: PathBuf,
        /// Name of the policy, instead of the file's.
        #[arg(long)]
        name: Option<String>,
    },
    /// Show the source of a policy; -o json shows all of its fields.
    #[command(visible_alias = "describe")]
    Show {
        /// Name of the policy.
        name: String,
    },
    /// List the policies in force, with the counters of the node that answers.
    #[command(visible_alias = "list")]
    Ls,
    /// Remove a policy.
    #[command(visible_alias = "delete")]
    Rm {
        /// Name of the policy.
        name: String,
    },
}

/// The policies to compare with.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyBaseArgs {
    /// Policies to compare with: server for those in force, none, or files. Repeatable for files.
    #[arg(long, value_name = "server|none|FILE", default_value = "server")]
    against: Vec<String>,
}

impl PolicyBaseArgs {
    fn is_server(&self) -> bool {
        self.against.iter().any(|source| source == "server")
    }
}

/// Runs a command that needs no server. Returns a command that needs one.
pub(crate) fn offline(
    output: &OutputFormat,
    command: PolicyCommand,
) -> Result<Option<PolicyCommand>> {
    match command {
        PolicyCommand::Check { files } => checked(output, &files).map(|()| None),
        PolicyCommand::Lint(args) => lint::lint(output, &args).map(|()| None),
        PolicyCommand::Diff {
            files,
            removed,
            against,
        } if !against.is_server() => {
            let before = of_files(&against)?;
            let after = changed(&before, &files, &removed)?;
            decisions::diff(output, &site(before), &site(after))?;
            Ok(None)
        }
        PolicyCommand::Explain(explain) if !explain.asks_server() => {
            let site = site(of_files(&explain.against)?);
            decisions::explain(output, &explain, &site)?;
            Ok(None)
        }
        command => Ok(Some(command)),
    }
}

pub(crate) async fn run(app: &App, command: PolicyCommand) -> Result<()> {
    let mut policies = app.client.policies();
    match command {
        PolicyCommand::Check { files } => checked(&app.output, &files),
        PolicyCommand::Lint(args) => lint::lint(&app.output, &args),
        PolicyCommand::Diff { files, removed, .. } => {
            let before = of_server(app).await?;
            let after = changed(&before, &files, &removed)?;
            decisions::diff(&app.output, &site(before), &site(after))
        }
        PolicyCommand::Explain(explain) => {
            let site = site(of_server(app).await?);
            decisions::explain(&app.output, &explain, &site)
        }
        PolicyCommand::Set { file, name } => set(app, &file, name).await,
        PolicyCommand::Show { name } => {
            let request = PolicyServiceGetRequest { name };
            let policy = given(policies.get(request).await?.into_inner().policy)?;
            app.output
                .one_with(&policy, |policy| out!("{}", policy.source))
        }
        PolicyCommand::Ls => {
            let answer = policies.list(PolicyServiceListRequest {}).await?;
            let policies = answer.into_inner().policies;
            if policies.is_empty() && app.output.is_table() {
                noteln!("No policy is in force; the built-in authorisation table decides.");
                return Ok(());
            }
            app.output.list(&policies)
        }
        PolicyCommand::Rm { name } => {
            let request = PolicyServiceRemoveRequest { name };
            let answer = policies.remove(request).await?.into_inner();
            app.output.one(&given(answer.policy)?)
        }
    }
}

async fn set(app: &App, file: &Path, name: Option<String>) -> Result<()> {
    let name = match name {
        Some(name) => name,
        None => name_of(file)?,
    };
    let source = files::read(file)?;
    // The server would refuse a fault as well, but without the name of the file.
    check(&file.display().to_string(), &source)?;
    let before = of_server(app).await?;
    let known = before.iter().find(|policy| policy.name == name);
    let request = PolicyServiceSetRequest {
        name: name.clone(),
        source: source.clone(),
        expected_generation: Some(known.map_or(0, |policy| policy.generation)),
    };
    let answer = app.client.policies().set(request).await?.into_inner();
    let policy = given(answer.policy)?;
    if !app.is_dry() {
        return app.output.one(&policy);
    }
    let mut after = before.clone();
    put(&mut after, policy);
    decisions::diff(&app.output, &site(before), &site(after))?;
    if app.output.is_table() {
        noteln!("Nothing was changed. To put the policy in force, leave --dry-run out.");
    }
    Ok(())
}

fn checked(output: &OutputFormat, files: &[PathBuf]) -> Result<()> {
    let mut rows = Vec::new();
    for file in files {
        let Checked { compiled, calls } = check(&file.display().to_string(), &files::read(file)?)?;
        rows.push((file.display().to_string(), compiled, calls));
    }
    if output.is_table() {
        let cells = rows.iter().map(|(file, compiled, calls)| {
            vec![
                file.clone(),
                "good".to_owned(),
                compiled.methods().len().to_string(),
                format!("{} passed", compiled.tests().count()),
                calls.to_string(),
            ]
        });
        print_table(
            &["file", "policy", "methods", "tests", "calls tried"],
            cells,
        );
        for (file, compiled, _) in &rows {
            if compiled.tests().next().is_none() {
                noteln!("note:  {file} has no tests, which are rules named test_...");
            }
        }
        return Ok(());
    }
    let values = rows.iter().map(|(file, compiled, calls)| {
        json!({
            "file": file, "methods": compiled.paths(),
            "tests": compiled.tests().collect::<Vec<_>>(), "callsTried": calls,
        })
    });
    output.value(&values.collect())
}

/// The name of a policy: that of its file, without the extension.
fn name_of(file: &Path) -> Result<String> {
    let name = file.file_stem().and_then(|stem| stem.to_str());
    let name = name.filter(|stem| *stem != "-");
    let name = name.context("the policy has no name: --name NAME")?;
    Ok(name.to_owned())
}

async fn of_server(app: &App) -> Result<Vec<Policy>> {
    let mut policies = app.client.policies();
    let answer = policies.list(PolicyServiceListRequest {}).await?;
    Ok(answer.into_inner().policies)
}

fn of_files(against: &PolicyBaseArgs) -> Result<Vec<Policy>> {
    let mut policies = Vec::new();
    let files = against.against.iter().filter(|source| *source != "none");
    for file in files {
        put(&mut policies, of_file(Path::new(file))?);
    }
    Ok(policies)
}

fn of_file(file: &Path) -> Result<Policy> {
    let source = files::read(file)?;
    check(&file.display().to_string(), &source)?;
    Ok(Policy {
        name: name_of(file)?,
        source,
        ..Policy::default()
    })
}

/// Adds a policy, or replaces the one with its name.
fn put(policies: &mut Vec<Policy>, policy: Policy) {
    policies.retain(|known| known.name != policy.name);
    policies.push(policy);
    policies.sort_by(|one, other| one.name.cmp(&other.name));
}

/// The policies after a change.
fn changed(before: &[Policy], files: &[PathBuf], removed: &[String]) -> Result<Vec<Policy>> {
    ensure!(
        !files.is_empty() || !removed.is_empty(),
        "name a file to put in force, or a policy to remove: --rm NAME"
    );
    let mut after = before.to_vec();
    for name in removed {
        let Some(at) = after.iter().position(|policy| policy.name == *name) else {
            bail!("there is no policy {name:?}; see: metalmesh policy ls");
        };
        after.remove(at);
    }
    for file in files {
        put(&mut after, of_file(file)?);
    }
    Ok(after)
}

/// Compiles the policies. A policy that does not compile refuses all of its methods, as it does on a
/// node.
fn site(policies: Vec<Policy>) -> Arc<SitePolicies> {
    let member = |policy: Policy| match Compiled::new(&policy.name, &policy.source) {
        Ok(compiled) => SitePolicy::new(compiled),
        Err(_) => SitePolicy::stored(
            &policy.name,
            &policy.source,
            &policy.methods.iter().cloned().collect(),
        ),
    };
    Arc::new(SitePolicies::new(
        policies.into_iter().map(member).collect(),
    ))
}
