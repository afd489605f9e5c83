//! `metalmesh policy`.

mod decisions;

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
use crate::output::{Format, print_table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile policies, run their tests, and try them on every sort of caller; no server is asked.
    ///
    /// Exits with 1 and the first fault: file, line, column.
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Show who would gain and who would lose by policies, before they are in force.
    ///
    /// Every method that a policy names is called as every sort of caller, without a server's
    /// objects: rules about what a request says show in the policy's own tests instead.
    Diff {
        /// Policies to put in force beside, or in place of, those that are.
        files: Vec<PathBuf>,
        /// A policy to take away; may be given more than once.
        #[arg(long = "rm", value_name = "NAME")]
        removed: Vec<String>,
        #[command(flatten)]
        against: Against,
    },
    /// Show which rule decides a method for a sort of caller, or for all of them.
    Explain(decisions::Explain),
    /// Put a policy in force, or another one in its place.
    ///
    /// It is called after its file. One that is broken is refused; the one before stays. With
    /// --dry-run it is shown who would gain and who would lose.
    Set {
        /// The policy; - for stdin.
        file: PathBuf,
        /// Its name, if not that of the file.
        #[arg(long)]
        name: Option<String>,
    },
    /// Show a policy's source; with -o json all of it.
    #[command(visible_alias = "describe")]
    Show { name: String },
    /// List the policies in force, and what came of them at the node that answers.
    #[command(visible_alias = "list")]
    Ls,
    /// Take a policy out of force.
    #[command(visible_alias = "delete")]
    Rm { name: String },
}

/// What is in force before.
#[derive(Debug, Clone, Args)]
pub(crate) struct Against {
    /// What is in force now: server, none, or a file; may be given more than once for files.
    #[arg(long, value_name = "server|none|FILE", default_value = "server")]
    against: Vec<String>,
}

impl Against {
    fn is_server(&self) -> bool {
        self.against.iter().any(|it| it == "server")
    }
}

/// Carries out what needs no server; gives back the rest.
pub(crate) fn offline(output: &Format, command: Command) -> Result<Option<Command>> {
    match command {
        Command::Check { files } => checked(output, &files).map(|()| None),
        Command::Diff {
            files,
            removed,
            against,
        } if !against.is_server() => {
            let before = of_files(&against)?;
            let after = changed(&before, &files, &removed)?;
            decisions::diff(output, &site(before), &site(after))?;
            Ok(None)
        }
        Command::Explain(explain) if !explain.asks_server() => {
            let site = site(of_files(&explain.against)?);
            decisions::explain(output, &explain, &site)?;
            Ok(None)
        }
        command => Ok(Some(command)),
    }
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut policies = app.client.policies();
    match command {
        Command::Check { files } => checked(&app.output, &files),
        Command::Diff { files, removed, .. } => {
            let before = of_server(app).await?;
            let after = changed(&before, &files, &removed)?;
            decisions::diff(&app.output, &site(before), &site(after))
        }
        Command::Explain(explain) => {
            let site = site(of_server(app).await?);
            decisions::explain(&app.output, &explain, &site)
        }
        Command::Set { file, name } => set(app, &file, name).await,
        Command::Show { name } => {
            let request = PolicyServiceGetRequest { name };
            let policy = given(policies.get(request).await?.into_inner().policy)?;
            app.output.one_with(&policy, |it| out!("{}", it.source))
        }
        Command::Ls => {
            let answer = policies.list(PolicyServiceListRequest {}).await?;
            let policies = answer.into_inner().policies;
            if policies.is_empty() && app.output.is_table() {
                noteln!("No policy is in force; the contract's table decides.");
                return Ok(());
            }
            app.output.list(&policies)
        }
        Command::Rm { name } => {
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
    // Faults are told with the file's name, before the server is asked.
    check(&file.display().to_string(), &source)?;
    let before = of_server(app).await?;
    let known = before.iter().find(|it| it.name == name);
    let request = PolicyServiceSetRequest {
        name: name.clone(),
        source: source.clone(),
        expected_generation: Some(known.map_or(0, |it| it.generation)),
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
        noteln!("Nothing is changed. To put it in force, leave --dry-run out.");
    }
    Ok(())
}

fn checked(output: &Format, files: &[PathBuf]) -> Result<()> {
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
                noteln!("note:  {file} has no tests: rules called test_... that must be true");
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

/// A policy is called after its file.
fn name_of(file: &Path) -> Result<String> {
    let name = file.file_stem().and_then(|it| it.to_str());
    let name = name.filter(|it| *it != "-");
    let name = name.context("the policy has no name: --name NAME")?;
    Ok(name.to_owned())
}

async fn of_server(app: &App) -> Result<Vec<Policy>> {
    let mut policies = app.client.policies();
    let answer = policies.list(PolicyServiceListRequest {}).await?;
    Ok(answer.into_inner().policies)
}

fn of_files(against: &Against) -> Result<Vec<Policy>> {
    let mut policies = Vec::new();
    let files = against.against.iter().filter(|it| *it != "none");
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

/// Puts a policy beside others, or in the place of the one with its name.
fn put(policies: &mut Vec<Policy>, policy: Policy) {
    policies.retain(|it| it.name != policy.name);
    policies.push(policy);
    policies.sort_by(|one, other| one.name.cmp(&other.name));
}

/// What is in force after a change.
fn changed(before: &[Policy], files: &[PathBuf], removed: &[String]) -> Result<Vec<Policy>> {
    ensure!(
        !files.is_empty() || !removed.is_empty(),
        "name a file to put in force, or a policy to take away: --rm NAME"
    );
    let mut after = before.to_vec();
    for name in removed {
        let Some(at) = after.iter().position(|it| it.name == *name) else {
            bail!("no policy is called {name:?}; see: metalmesh policy ls");
        };
        after.remove(at);
    }
    for file in files {
        put(&mut after, of_file(file)?);
    }
    Ok(after)
}

/// The policies compiled; one that this program cannot compile refuses its methods, as at a node.
fn site(policies: Vec<Policy>) -> Arc<SitePolicies> {
    let member = |it: Policy| match Compiled::new(&it.name, &it.source) {
        Ok(compiled) => SitePolicy::new(compiled),
        Err(_) => SitePolicy::stored(&it.name, &it.source, &it.methods.iter().cloned().collect()),
    };
    Arc::new(SitePolicies::new(
        policies.into_iter().map(member).collect(),
    ))
}
