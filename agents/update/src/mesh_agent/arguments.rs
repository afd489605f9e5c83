use std::path::PathBuf;
use std::process::ExitCode;

use agents_kit::AgentCommand;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;

use super::mesh_run::MeshRun;
use super::own_files::{FileTrust, read_text};
use super::program::MeshProgram;
use crate::files::UpdateFiles;
use crate::probe::PROBE_COMMAND;
use crate::probe_program::{ProbeProgramArgs, probe_program};

/// The subcommands of an agent that replaces its program. `R` has the arguments and the description of
/// `run`.
#[derive(Clone, Debug, Subcommand)]
pub enum MeshCommand<R: Args> {
    // A doc comment here would hide the descriptions of the agent's own commands in the help.
    #[command(flatten)]
    Agent(AgentCommand<R>),
    /// Check a configuration file.
    Check(CheckArgs),
    /// Show how self-update goes, or try a failed release again.
    #[command(subcommand)]
    Update(UpdateCommand),
    /// Run `check` of a new program with limits. Self-update does so.
    #[command(name = PROBE_COMMAND, hide = true)]
    ProbeProgram(ProbeProgramArgs),
}

/// Arguments of `check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// Configuration, TOML. Files that it names are not read.
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Commands about self-update.
#[derive(Clone, Debug, Subcommand)]
pub enum UpdateCommand {
    /// Show the version that runs, the wanted one, the phase, the digest and the last error.
    Status {
        /// Directory of the agent's state.
        #[arg(long, value_name = "DIR", env = "METALMESH_STATE_DIR")]
        state_dir: PathBuf,
        /// Print the status as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forget failed releases, so that the wanted one is tried again.
    Retry {
        /// Directory of the agent's state.
        #[arg(long, value_name = "DIR", env = "METALMESH_STATE_DIR")]
        state_dir: PathBuf,
    },
}

/// Carries out a command. `run` becomes the program that the record of updates names before it begins; it
/// returns the exit code.
pub fn main<R, W, F>(program: &'static MeshProgram, command: MeshCommand<R>, run: W) -> ExitCode
where
    R: MeshRun,
    W: FnOnce(R, CancellationToken) -> F,
    F: Future<Output = Result<ExitCode>>,
{
    let done = match command {
        MeshCommand::Agent(command) => {
            return agents_kit::main(command, |args: R, stop| {
                crate::hand_over(&args.as_ref().state_dir, &FileTrust(args.config()));
                run(args, stop)
            });
        }
        MeshCommand::Check(args) => check(program, &args).map(|()| ExitCode::SUCCESS),
        MeshCommand::Update(command) => update(&command).map(|()| ExitCode::SUCCESS),
        MeshCommand::ProbeProgram(args) => probe_program(&args, &program.check_arguments()),
    };
    done.unwrap_or_else(|error| base_runtime::exit_code(Err(error)))
}

fn check(program: &MeshProgram, args: &CheckArgs) -> Result<()> {
    let file = args.config.display();
    let text = read_text(&args.config).with_context(|| format!("cannot read {file}"))?;
    if let Err(problem) = (program.check)(&text) {
        bail!("{file}: {problem}");
    }
    print(&match args.json {
        true => serde_json::json!({ "problems": [] }).to_string(),
        false => format!("{file}: the configuration is valid"),
    });
    Ok(())
}

fn update(command: &UpdateCommand) -> Result<()> {
    match command {
        UpdateCommand::Retry { state_dir } => Ok(UpdateFiles::existing(state_dir)?.ask_retry()?),
        UpdateCommand::Status { state_dir, json } => {
            let status = UpdateFiles::existing(state_dir)?.status()?;
            let status = status.context("there is no status of updates; does the agent run?")?;
            print(&match json {
                true => serde_json::to_string(&status)?,
                false => status.lines().join("\n"),
            });
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "the command's output")]
fn print(text: &str) {
    println!("{text}");
}
