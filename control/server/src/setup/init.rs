//! `metalmeshd init`: the first node of a cluster.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use tokio_util::sync::CancellationToken;

use super::answers::SetupAnswers;
use super::dialogue::Dialogue;
use super::place;
use super::plan::NodePlan;
use super::report::{ConfigText, SetupReport};
use super::source::{SetupSource, SourceFacts, choose};
use super::steps::{StepFacts, after_init};
use super::{SetupConfig, check_host, exists, give_away, hostname, questions, template, write};
use crate::args::{InitArgs, RunArgs};
use crate::config::Config;
use crate::guarded_dir::GuardedDir;
use crate::node;

/// The refusal of a data directory that has a node.
const IN_USE: &str =
    "the data directory is in use already; for a new admin token: metalmeshd token";

/// The first node, before anything is written.
struct FirstNode {
    setup: SetupConfig,
    /// The flags, with the destination of the admin token from the answers.
    run: RunArgs,
    partition: Option<String>,
}

/// Sets up the first node and prints the report.
pub(crate) async fn init(args: &InitArgs, stop: CancellationToken) -> Result<()> {
    let run = &args.run;
    let source = choose(SourceFacts {
        config: run.config.as_deref(),
        exists: exists(run.config.as_deref()),
        answers: args.setup.answers.as_deref(),
        has_flags: run.overrides.data_dir.is_some(),
        is_terminal: std::io::stdin().is_terminal(),
        force: args.setup.force,
    })?;
    let is_checked = source != SetupSource::Flags;
    let first = prepare(args, source)?;
    let mut report = SetupReport::new(args.setup.output, args.setup.dry_run);
    let done = carry_out(args, &first, is_checked, &mut report, &stop).await;
    report.print(done.as_ref().err());
    done
}

/// Collects what describes the node.
fn prepare(args: &InitArgs, source: SetupSource) -> Result<FirstNode> {
    let run = args.run.clone();
    let known = SetupAnswers::default().overridden(&run.overrides);
    let (answers, path) = match source {
        SetupSource::Flags => return existing(run, None),
        SetupSource::Config(path) => return existing(run, Some(path)),
        SetupSource::Answers { answers, config } => (
            SetupAnswers::read(&answers)?.overridden(&run.overrides),
            config,
        ),
        SetupSource::Questions { config } => {
            let stdin = std::io::stdin();
            let mut dialogue = Dialogue::new(stdin.lock(), std::io::stderr());
            let known = SetupAnswers {
                token_file: run.token_file.clone(),
                ..known
            };
            (questions::ask(&mut dialogue, known, &hostname())?, config)
        }
    };
    planned(run, answers, path)
}

/// A node whose configuration exists, or that flags alone describe.
fn existing(mut run: RunArgs, path: Option<PathBuf>) -> Result<FirstNode> {
    run.config.clone_from(&path);
    let config = Config::resolve(path.as_deref(), run.dev, &run.overrides)?;
    let setup = SetupConfig {
        config,
        path,
        new: None,
    };
    Ok(FirstNode {
        setup,
        run,
        partition: None,
    })
}

/// A node whose configuration is to be written.
fn planned(mut run: RunArgs, answers: SetupAnswers, path: PathBuf) -> Result<FirstNode> {
    let partition = answers.partition.clone();
    run.token_file = run.token_file.or_else(|| answers.token_file.clone());
    let text = template::render(&NodePlan::forming(answers, &hostname())?);
    let config = Config::from_text(&text, &run.overrides)?;
    run.config = Some(path.clone());
    let setup = SetupConfig {
        config,
        path: Some(path.clone()),
        new: Some(ConfigText { path, text }),
    };
    Ok(FirstNode {
        setup,
        run,
        partition,
    })
}

async fn carry_out(
    args: &InitArgs,
    first: &FirstNode,
    is_checked: bool,
    report: &mut SetupReport,
    stop: &CancellationToken,
) -> Result<()> {
    let config = &first.setup.config;
    let handover = node::check_init(config, &first.run)?;
    check_token_file(first.run.token_file.as_deref())?;
    let owner = place::file_owner(args.setup.service_user.as_deref())?;
    if is_checked {
        check_host(&first.setup, &args.setup, owner, report).await?;
    }
    if args.setup.dry_run {
        if let Some(new) = &first.setup.new {
            report.would_write(new);
        }
        return Ok(());
    }
    let mode = write(&first.setup, &args.setup, owner)?;
    if let (Some(new), Some(mode)) = (&first.setup.new, mode) {
        report.wrote(new, mode);
    }
    // Flags alone are for trying out: that node runs as the caller.
    let owner = owner.filter(|_| first.setup.path.is_some());
    let dir = config.data_dir.as_deref().context("data_dir: is missing")?;
    let guarded = GuardedDir::take(dir, owner)?.context(IN_USE)?;
    let formed = node::init(config, &handover, stop).await;
    // In every case: an earlier attempt may have ended before it gave the files away.
    let given = give_away(guarded, config, owner);
    let formed = formed.with_context(|| repeat(first))?.context(IN_USE)?;
    given?;
    report.node(&formed.owner);
    for line in formed.told {
        report.step(line);
    }
    report.next(after_init(StepFacts {
        config,
        path: first.setup.path.as_deref(),
        token_file: first.run.token_file.as_deref(),
        partition: first.partition.as_deref(),
    }));
    Ok(())
}

/// The command that repeats a start that failed after its configuration was there.
fn repeat(first: &FirstNode) -> String {
    match &first.setup.path {
        Some(path) => format!(
            "the node is not set up; repeat it with the same configuration: metalmeshd init --config \
             {} --token-file NEWFILE",
            path.display()
        ),
        None => "the node is not set up".to_owned(),
    }
}

/// Refuses a file for the token that exists, before anything is written.
fn check_token_file(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    ensure!(
        !path.exists(),
        "--token-file {}: exists already; name a new file",
        path.display()
    );
    Ok(())
}
