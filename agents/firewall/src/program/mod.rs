//! The command line.

mod arguments;
mod check_args;
mod command_args;
mod drops;
mod file_args;
mod output;
mod update;

use std::ffi::CStr;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use agents_update::{EXIT_FOR_UPDATE, probe_program};
use anyhow::{Context as _, Result, bail};
use base_runtime::{logging, shutdown};
use proto_firewall::printable;

pub use arguments::Cli;
use arguments::Command;
use check_args::CheckArgs;
use command_args::{ApplyArgs, ExplainArgs, RunArgs};
use file_args::{CountersArgs, FileArgs};
use output::{OutputFormat, print};

use crate::admit::ObjectAdmission;
use crate::compile::RuleCompiler;
use crate::config::{ConfigError, SourceName};
use crate::dns::address_of;
use crate::explain::{Question, Resolved, explain};
use crate::monitor::{Statistics, now_ms};
use crate::netlink::Kernel;
use crate::plan::plan;
use crate::rule::{RuleSet, protocol_number};
use crate::run::{self, AgentFiles, RunEnd};
use crate::state::{FirewallState, Loaded, write_rules_file};
use crate::trial::{self, Outcome, TrialConditions};
use crate::update::hand_over;
use crate::view::RuleView;

/// Log filter without `METALMESH_LOG`.
const LOG_FILTER: &str = "info";
/// Arguments by which a new program checks the configuration at its standard input.
const CHECK_ARGUMENTS: [&CStr; 6] = [
    c"metalmesh-firewall",
    c"check",
    c"--file-only",
    c"--output",
    c"json",
    c"/dev/stdin",
];

/// Carries out a command, and returns the exit code. It is not zero, without an error, if the agent
/// ended so that another program takes its place.
///
/// # Errors
/// The command failed; for `check` also if an object is refused.
pub fn carry_out(cli: Cli) -> Result<ExitCode> {
    logging::start(cli.log, LOG_FILTER);
    let done = match cli.command {
        Command::Run(args) => {
            hand_over(&args.state.state_dir, &args.config);
            return Ok(match on_runtime(run_agent(args))? {
                RunEnd::Stopped => ExitCode::SUCCESS,
                RunEnd::OtherProgram => ExitCode::from(EXIT_FOR_UPDATE),
            });
        }
        Command::Apply(args) => on_runtime(apply(args)),
        Command::Check(args) => check(&args),
        Command::Confirm(args) => FirewallState::open(&args.state_dir)?.confirm(),
        Command::Explain(args) => explain_flow(&args),
        Command::Rules(args) => list_rules(&args),
        Command::Drops(args) => on_runtime(drops::list_drops(args)),
        Command::Counters(args) => counters(&args),
        Command::Update(command) => update::update(&command),
        Command::ProbeProgram(args) => return probe_program(&args, &CHECK_ARGUMENTS),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

async fn run_agent(args: RunArgs) -> Result<RunEnd> {
    let stop = shutdown::stop_on_signal()?;
    let files = AgentFiles {
        config: args.config,
        state_dir: args.state.state_dir,
        rules_file: (!args.no_rules_file).then_some(args.rules_file),
        metrics: args.metrics,
    };
    run::run(files, stop).await
}

/// Reads a file, with the name of the file in the error.
fn load_file(args: &FileArgs, admission: &mut ObjectAdmission) -> Result<Loaded> {
    let name = || args.config.display().to_string();
    let loaded = Loaded::load(&args.config, admission).map_err(|error| match error {
        field @ ConfigError::Field { .. } => anyhow::anyhow!("{}: {field}", name()),
        other => other.into(),
    })?;
    for notice in loaded.config.notices() {
        eprintln!("{}: {notice}", name());
    }
    Ok(loaded)
}

/// Reads a file. Other sources than the file are not asked: what they said last is in the agent's
/// directory.
fn load(args: &FileArgs) -> Result<Loaded> {
    let mut admission = ObjectAdmission::default();
    let loaded = load_file(args, &mut admission)?;
    let controllers = &loaded.config.controllers;
    if controllers
        .sources()
        .all(|source| source == SourceName::Static)
    {
        return Ok(loaded);
    }
    let state = FirewallState::open(&args.state.state_dir)?;
    let collected = state.last_objects(&loaded.config);
    Ok(loaded.with_objects(collected, &mut admission)?)
}

fn check(args: &CheckArgs) -> Result<()> {
    let loaded = if args.file_only {
        load_file(&args.file, &mut ObjectAdmission::default())?
    } else {
        load(&args.file)?
    };
    let problems = &loaded.admitted.problems;
    let rules = loaded.admitted.rules.rules().count();
    let name = loaded.config.name();
    let text = || {
        let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "{}: {rules} rules, {} problems",
            printable(&name),
            problems.len()
        ));
        lines
    };
    let json = serde_json::json!({ "name": name, "rules": rules, "problems": problems });
    print(args.file.output, &json, text)?;
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{} objects would not be in force", problems.len())
}

async fn apply(args: ApplyArgs) -> Result<()> {
    let loaded = load(&args.file)?;
    for problem in &loaded.admitted.problems {
        eprintln!("refused: {problem}");
    }
    let kernel = Kernel::open()?;
    if args.dry_run {
        let installed = kernel.read()?;
        // Networks have the numbers that they have in the kernel.
        let mut compiler = RuleCompiler::default();
        compiler.adopt(&installed.sets);
        let changes = plan(&installed, compiler.compile(&loaded.admitted.rules));
        return print_list(args.file.output, "changes", &changes);
    }
    let state = FirewallState::open(&args.file.state.state_dir)?;
    let _lock = state.lock()?;
    let mut probes = loaded.config.controllers.firewall.probes.clone();
    probes.extend(args.probe);
    let conditions = TrialConditions {
        probes,
        confirm_within: args.confirm_within,
    };
    let stop = shutdown::stop_on_signal()?;
    // The session that the command was started in may be what the new rules cut off.
    let _hang_up = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
    match trial::apply(&kernel, &state, &loaded, &conditions, &stop).await? {
        Outcome::Kept(changes) => {
            if let Some(path) = &args.rules_file {
                write_rules_file(path, &loaded.admitted)?;
            }
            print_list(args.file.output, "changes", &changes)
        }
        Outcome::RolledBack(reason) => bail!("rolled back to the last good rules: {reason}"),
    }
}

fn explain_flow(args: &ExplainArgs) -> Result<()> {
    let loaded = load(&args.file)?;
    if args.from.is_ipv4() != args.to.is_ipv4() {
        bail!("--from and --to have different address families; use IPv4 for both, or IPv6");
    }
    let protocol = match args.protocol.as_str() {
        "tcp" => protocol_number::TCP,
        "udp" => protocol_number::UDP,
        "sctp" => protocol_number::SCTP,
        "icmp" if args.from.is_ipv4() => protocol_number::ICMP,
        "icmp" => protocol_number::ICMP6,
        other => other
            .parse()
            .context("--protocol is tcp, udp, sctp, icmp or a number")?,
    };
    let question = Question {
        from: args.from,
        to: args.to,
        protocol,
        port: args.port,
        input: args.input.clone(),
        output: args.leaving.clone(),
    };
    let answer = explain(&loaded.admitted.rules, &question, &resolved(&loaded));
    let text = || {
        let verdict = if answer.accepted { "accept" } else { "drop" };
        let mut lines = vec![format!(
            "{verdict}: {} ({} to {})",
            answer.reason, answer.input, answer.output
        )];
        lines.extend(answer.rule.iter().map(RuleView::line));
        lines
    };
    print(args.file.output, &answer, text)
}

/// The addresses that the kernel's sets of names hold. Empty where they cannot be read: then a rule
/// with names matches nothing.
fn resolved(loaded: &Loaded) -> Resolved {
    let mut found = Resolved::new();
    let names = loaded.admitted.rules.selectors();
    if names.is_empty() {
        return found;
    }
    let Ok(kernel) = Kernel::open() else {
        eprintln!("the addresses of names cannot be read from the kernel; run this as root");
        return found;
    };
    for set in names
        .iter()
        .flat_map(|name| [name.set(true), name.set(false)])
    {
        let elements = kernel.timed(&set).unwrap_or_default();
        let addresses = elements
            .iter()
            .filter_map(|element| address_of(&element.key));
        found.insert(set, addresses.collect());
    }
    found
}

fn list_rules(args: &FileArgs) -> Result<()> {
    let loaded = load(args)?;
    let rules: Vec<RuleView> = loaded.admitted.rules.rules().map(RuleView::from).collect();
    print(args.output, &rules, || {
        rules.iter().map(RuleView::line).collect()
    })
}

fn counters(args: &CountersArgs) -> Result<()> {
    let counters = Kernel::open()?.counters()?;
    let lines: Vec<String> = counters
        .iter()
        .map(|(name, value)| format!("{name} {} packets {} bytes", value.packets, value.bytes))
        .collect();
    let rules = last_good_rules(&args.state.state_dir);
    let sorted = Statistics::new(now_ms(), counters, &rules);
    print(args.output, &sorted, || lines)
}

/// The rules of the last good configuration, by which counters are sorted. Without one that can be
/// read, none.
fn last_good_rules(state_dir: &Path) -> RuleSet {
    // To open the directory would make it.
    if !state_dir.exists() {
        return RuleSet::default();
    }
    let state = FirewallState::open(state_dir).map_err(anyhow::Error::from);
    match state.and_then(|state| state.last_good()) {
        Ok(Some(loaded)) => loaded.admitted.rules.clone(),
        Ok(None) => RuleSet::default(),
        Err(error) => {
            eprintln!("the actions of rules are not known: {error:#}");
            RuleSet::default()
        }
    }
}

fn print_list<T: Display>(output: OutputFormat, name: &str, list: &[T]) -> Result<()> {
    let lines: Vec<String> = list.iter().map(ToString::to_string).collect();
    let json = serde_json::json!({ name: lines });
    print(output, &json, || {
        if lines.is_empty() {
            vec!["nothing to change".to_owned()]
        } else {
            lines.clone()
        }
    })
}
