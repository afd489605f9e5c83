//! What the lab's program does when it is started by the lab itself.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::{chassis, serve};

/// Parts of a lab that are processes of their own.
#[derive(Clone, Debug, Subcommand)]
pub enum Helper {
    /// The chassis of one machine
    #[command(hide = true)]
    Chassis { config: PathBuf },
    /// What `ipmi_sim` calls to reach a chassis
    #[command(hide = true)]
    ChassisControl {
        socket: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The image server
    #[command(hide = true)]
    Images { dir: PathBuf, address: String },
}

impl Helper {
    /// Does it.
    ///
    /// # Errors
    /// Whatever went wrong.
    #[expect(clippy::print_stdout, reason = "ipmi_sim reads the answer from there")]
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Chassis { config } => chassis::run(config),
            Self::ChassisControl { socket, arguments } => {
                print!("{}", chassis::ipmi_control(socket, arguments)?);
                Ok(())
            }
            Self::Images { dir, address } => serve::run(dir, address),
        }
    }
}
