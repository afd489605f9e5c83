//! `metalmesh doctor`: what is wrong, why that matters, and what mends it.
//!
//! `collect` asks everybody and knows nothing of right and wrong; `report` and the checks judge
//! what was found and ask nobody.

mod audit;
mod cluster;
mod collect;
mod facts;
mod fleet;
mod local;
mod probe;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use crate::app::App;
use crate::args::Global;
use report::{CHECKS, Level};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The API of another control node; repeatable. The context's token is sent there too: the
    /// nodes of a cluster know the same tokens.
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
    /// Only these checks.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    only: Vec<String>,
    /// Not these checks.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    omit: Vec<String>,
    /// The data directory of a control node on this host.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The program ends with this code: 0 all is well, 1 a warning, 2 a failure. Nothing more is said.
#[derive(Debug, thiserror::Error)]
#[error("the report says it")]
pub(crate) struct Exit(pub(crate) u8);

/// Runs the checks; the error is how the program ends.
pub(crate) async fn run(global: &Global, doctor: &Doctor) -> Result<()> {
    match examined(global, doctor).await {
        Ok(Level::Ok) => Ok(()),
        Ok(level) => Err(Exit(level.exit_code()).into()),
        Err(error) => {
            noteln!("{}", crate::explain::explain(&error));
            Err(Exit(Level::Fail.exit_code()).into())
        }
    }
}

async fn examined(global: &Global, doctor: &Doctor) -> Result<Level> {
    for code in doctor.only.iter().chain(&doctor.omit) {
        if !CHECKS.iter().any(|check| check.code == code) {
            let all: Vec<&str> = CHECKS.iter().map(|check| check.code).collect();
            bail!("there is no check {code:?}; there are {}", all.join(", "));
        }
    }
    let app = App::new(global)?;
    let facts = collect::collect(&app, global, doctor).await;
    let lines = report::report(&facts, &doctor.only, &doctor.omit);
    if app.output.is_table() {
        for line in &lines {
            outln!("{line}");
        }
    } else {
        let all: Vec<Value> = lines.iter().map(report::Line::json).collect();
        app.output.value(&Value::Array(all))?;
    }
    Ok(report::worst(&lines))
}
