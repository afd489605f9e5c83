//! metalmeshd: one node of the control plane.
//!
//! `args` and `config` read the flags and the configuration, `node` opens the store and wires the
//! parts (API on TCP, mesh on UDP, duties of the leader), `join` joins a cluster, `restore` builds a
//! data directory from a backup, and `bootstrap` hands over the first admin token through a file.
//! `setup` is the first start: it checks the host and writes the configuration file. `guarded_dir` keeps
//! the data directory root's while root works in it.
//!
//! Invariants:
//! - no secret is printed or logged: tokens and keys go to files of mode 0600 or to the command
//!   line's context file;
//! - a node that serves prints one line that begins with `ready` on standard output, after it listens
//!   on all its addresses;
//! - a configuration is checked before anything is opened, and its errors name the field;
//! - the audit trail ends after the last call, and the store after all parts that write to it.

#![allow(
    clippy::print_stdout,
    reason = "the ready line and the paths are for the caller"
)]

mod args;
mod bootstrap;
mod config;
mod data_dir;
mod files;
mod guarded_dir;
mod host_inspector;
mod ironic;
mod join;
mod login;
mod metrics;
mod node;
mod oidc;
mod peers;
mod restore;
mod setup;
mod tls;
mod traces;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use base_runtime::shutdown::stop_on_signal;
use base_runtime::{BuildInfo, exit_code, logging};
use control_state::FEATURE_LEVEL;
use nix::sys::stat::{Mode, umask};
use tokio_util::sync::CancellationToken;

use args::{DaemonArgs, DaemonCommand, RunArgs};
use config::Config;

/// The log filter if `METALMESH_LOG` is not set: `info`, without the warnings of openraft and the info
/// messages of h2.
const LOG_FILTER: &str = "info,openraft=error,h2=warn";

/// The program: parses its arguments, runs, and returns its exit code.
pub fn main(build: BuildInfo) -> ExitCode {
    let args: DaemonArgs = base_runtime::parse(build.with_feature_level(FEATURE_LEVEL));
    logging::start(args.log(), LOG_FILTER);
    exit_code(start(&args))
}

fn start(args: &DaemonArgs) -> Result<()> {
    // The state has secrets of every project, and RocksDB makes its files readable to whom the umask lets:
    // a data directory that an operator made beforehand may be open to others.
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("TLS was set up twice"))?;
    let (run, is_token) = match &args.command {
        Some(DaemonCommand::Restore(restore)) => return runtime()?.block_on(restore::run(restore)),
        Some(DaemonCommand::Init(init)) => {
            return runtime()?.block_on(async { setup::init(init, stop()?).await });
        }
        Some(DaemonCommand::Join(join)) => {
            return runtime()?.block_on(async { setup::join(join, stop()?).await });
        }
        Some(DaemonCommand::Check(run)) => {
            resolved(run)?;
            println!("the configuration is good");
            return Ok(());
        }
        Some(DaemonCommand::Token(run)) => (run, true),
        None => (&args.run, false),
    };
    let config = resolved(run)?;
    runtime()?.block_on(async {
        if is_token {
            return node::token(config, run, stop()?).await;
        }
        node::run(config, run, stop()?).await
    })
}

fn resolved(run: &RunArgs) -> Result<Config> {
    Config::resolve(run.config.as_deref(), run.dev, &run.overrides)
}

/// The token that SIGTERM or SIGINT cancels.
fn stop() -> Result<CancellationToken> {
    stop_on_signal().context("cannot listen for SIGTERM and SIGINT")
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    proto_link::runtime()
        .build()
        .context("cannot start the runtime")
}
