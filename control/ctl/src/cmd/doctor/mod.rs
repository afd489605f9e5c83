//! `metalmesh doctor`: findings, their consequences, and the commands that mend them.
//!
//! `collect` gathers facts over the network and judges nothing. `report` and the checks are pure
//! functions of these facts.

mod audit;
mod cluster;
mod collect;
mod facts;
mod firewalls;
mod fleet;
mod level;
mod local;
mod probe;
mod probed;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use crate::app::App;
use crate::global_flags::GlobalFlags;
use level::FindingLevel;
use report::CHECKS;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// API of another control node. Repeatable. The context's token is sent to it as well, since all
    /// nodes of a cluster accept the same tokens.
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
    /// Run only these checks, separated by commas.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    only: Vec<String>,
    /// Leave these checks out, separated by commas.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    omit: Vec<String>,
    /// Data directory of a control node on this host [default: /var/lib/metalmesh/control].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The exit code of the program: 1 after a warning, 2 after a failure. The report has been printed;
/// nothing else is.
#[derive(Debug, thiserror::Error)]
#[error("the report has warnings or failures")]
pub(crate) struct DoctorExit(pub(crate) u8);

/// Runs the checks.
///
/// # Errors
/// [`DoctorExit`] after a warning or failure.
pub(crate) async fn run(global: &GlobalFlags, doctor: &DoctorArgs) -> Result<()> {
    match examined(global, doctor).await {
        Ok(FindingLevel::Ok) => Ok(()),
        Ok(level) => Err(DoctorExit(level.exit_code()).into()),
        Err(error) => {
            noteln!("{}", crate::explain::explain(&error));
            Err(DoctorExit(FindingLevel::Fail.exit_code()).into())
        }
    }
}

async fn examined(global: &GlobalFlags, doctor: &DoctorArgs) -> Result<FindingLevel> {
    for code in doctor.only.iter().chain(&doctor.omit) {
        if !CHECKS.iter().any(|check| check.code == code) {
            let all: Vec<&str> = CHECKS.iter().map(|check| check.code).collect();
            bail!(
                "there is no check {code:?}; the checks are {}",
                all.join(", ")
            );
        }
    }
    let app = App::new(global)?;
    let facts = collect::collect(&app, global, doctor).await;
    let lines = report::report(&facts, &doctor.only, &doctor.omit);
    if app.output.is_table() {
        for line in &lines {
            outln!("{line}");
        }
        let first = lines
            .iter()
            .find(|line| line.found.level > FindingLevel::Ok);
        if let Some(line) = first {
            noteln!(
                "hint:  the runbook of a finding: metalmesh explain {}",
                line.code
            );
        }
    } else {
        let all: Vec<Value> = lines.iter().map(report::ReportLine::json).collect();
        app.output.value(&Value::Array(all))?;
    }
    Ok(report::worst(&lines))
}
