//! The first start of a control node: `metalmeshd init` and `metalmeshd join`.
//!
//! Both check the host, write a configuration file unless there is one, and hand over to `node`, which
//! forms or joins the cluster. `source` decides what a start works from, `answers` and `questions`
//! collect it, `plan` completes it, `template` renders it, `checks` judges the host, `report` tells.
//!
//! Invariants:
//! - nothing is written before every answer is there and every check has passed or was accepted;
//! - an existing configuration file is replaced with `--force` only;
//! - a start that failed halfway can be repeated: what it wrote is used again;
//! - the invitation comes from standard input, and is in no argument, log or report;
//! - root works in the data directory only while no other user can write to it.

mod answers;
mod checks;
mod dialogue;
mod finding;
mod init;
mod invited;
mod join;
mod place;
mod plan;
mod questions;
mod report;
mod source;
mod steps;
mod template;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use proto_types::Timestamp;

use crate::args::SetupArgs;
use crate::config::Config;
use crate::data_dir::SEALING_KEY;
use crate::guarded_dir::{self, FileOwner, GuardedDir};
use report::{ConfigText, SetupReport};

pub(crate) use self::init::init;
pub(crate) use self::join::join;

/// A configuration that a first start works with.
struct SetupConfig {
    config: Config,
    /// The configuration file. `None` means that flags alone describe the node.
    path: Option<PathBuf>,
    /// The file that is to be written. `None` means that nothing is.
    new: Option<ConfigText>,
}

/// Checks the host and prints the findings.
///
/// # Errors
/// A check failed and was not accepted, or the data directory is no place for root to work in.
async fn check_host(
    setup: &SetupConfig,
    args: &SetupArgs,
    owner: Option<FileOwner>,
    report: &mut SetupReport,
) -> Result<()> {
    // Before the checks, which write to the disk too. It cannot be accepted.
    if let Some(dir) = &setup.config.data_dir {
        guarded_dir::check(dir, owner)?;
    }
    let findings = checks::run(&setup.config, owner, now()).await;
    report.checked(&findings);
    let refusals = checks::refusals(&findings, &args.accept);
    let Some(first) = refusals.first() else {
        return Ok(());
    };
    bail!(
        "{} of the checks failed, first {}: {}; {}. Nothing was written; to go on nevertheless: \
         --accept {}",
        refusals.len(),
        first.object,
        first.found,
        first.remedy,
        first.check.name()
    )
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    Timestamp::from_ms(ms)
}

/// Writes the configuration file, if there is one to write.
fn write(setup: &SetupConfig, args: &SetupArgs, owner: Option<FileOwner>) -> Result<Option<u32>> {
    let Some(new) = &setup.new else {
        return Ok(None);
    };
    place::write_config(&new.path, &new.text, args.force, owner).map(Some)
}

/// Gives the data directory and the sealing key to the user that the service runs as.
fn give_away(guarded: GuardedDir, config: &Config, owner: Option<FileOwner>) -> Result<()> {
    guarded.give()?;
    let (Some(owner), Some(dir)) = (owner, &config.data_dir) else {
        return Ok(());
    };
    match &config.sealing_key {
        Some(key) if !key.starts_with(dir) => guarded_dir::give_file(key, owner)
            .with_context(|| format!("mesh.sealing_key ({SEALING_KEY} without it)")),
        _ => Ok(()),
    }
}

/// The name of this host, as far as it has one that others may know.
fn hostname() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// `true` if the configuration file exists.
fn exists(path: Option<&Path>) -> bool {
    path.unwrap_or_else(|| Path::new(source::CONFIG_FILE))
        .exists()
}
