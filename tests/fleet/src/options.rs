//! What a run is told.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::delays::Delays;
use crate::plan::{MACHINES_PER_PARTITION_MAX, PARTITIONS_MAX, Plan};

/// How the report is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One line of JSON, last.
    Json,
}

/// A data centre, and what is done with it.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Machines
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub machines: usize,
    /// Partitions that they are spread over
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub partitions: usize,
    /// Of a hundred machines so many are allocated, run, and freed again
    #[arg(long, value_name = "PERCENT", default_value_t = 30)]
    pub tenants_percent: usize,
    /// Of a hundred BMCs so many speak IPMI, the others Redfish
    #[arg(long, value_name = "PERCENT", default_value_t = 25)]
    pub ipmi_percent: usize,
    /// Every partition demands that its machines join with what their BMC holds
    #[arg(long)]
    pub bmc_nonce: bool,
    /// Machines switched on in a second; 0 is all at once
    #[arg(long, value_name = "PER_SECOND", default_value_t = 40)]
    pub rate: u64,
    /// Let things fail: agents die, links flap, disks fail, BMCs hang, machines lose their power,
    /// control is killed
    #[arg(long)]
    pub chaos: bool,
    /// What fails and in which order follows from it; a fresh one if absent
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Between two faults, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub chaos_every_ms: u64,
    /// Look at control for so many seconds while nothing happens
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub idle_s: u64,
    #[command(flatten)]
    pub delays: Delays,
    /// The longest that nothing may come of something, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    pub patience_s: u64,
    /// How to print the report
    #[arg(long, short, value_enum, default_value_t)]
    pub output: Output,
    /// The control node's program; if absent the one that was built with this
    #[arg(long, value_name = "FILE")]
    pub metalmeshd: Option<PathBuf>,
    /// Send spans of calls, and of what agents make of them, to a collector of OpenTelemetry
    /// (OTLP/HTTP): http://127.0.0.1:4318/v1/traces
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Print what agents and machines log; RUST_LOG says how much
    #[arg(long)]
    pub log: bool,
}

impl Options {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// Names the option and what it may be.
    pub(crate) fn plan(&self) -> Result<Plan> {
        ensure!(
            (1..=PARTITIONS_MAX).contains(&self.partitions),
            "--partitions: {} is not in 1..={PARTITIONS_MAX}",
            self.partitions
        );
        let most = self.partitions * MACHINES_PER_PARTITION_MAX;
        ensure!(
            (self.partitions..=most).contains(&self.machines),
            "--machines: {} is not in {}..={most}: a partition has 1 to \
             {MACHINES_PER_PARTITION_MAX}",
            self.machines,
            self.partitions
        );
        for (option, percent) in [
            ("--tenants-percent", self.tenants_percent),
            ("--ipmi-percent", self.ipmi_percent),
        ] {
            ensure!(percent <= 100, "{option}: {percent} is more than a hundred");
        }
        Ok(Plan {
            machines: self.machines,
            partitions: self.partitions,
            ipmi_percent: self.ipmi_percent,
        })
    }
}
