//! The chassis of one machine: what a BMC has wires to. Owns the machine's QEMU.
//!
//! A process of its own, so that a machine keeps running when the lab's front is gone. It takes
//! commands on a Unix socket (from `ipmi_sim` through a script, from the lab, from a test) and
//! from sushy-tools' notifications; it carries the BMC's KCS wire between namespaces.

mod notify;
mod qemu;
pub mod qmp;
mod relay;
mod server;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use qemu::{Accelerator, Boot, Disk, Firmware};
pub use server::{Command, Fault, PowerChange, Status, call, ipmi_control};

/// What a machine is made of, and where its wires end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub name: String,
    /// SMBIOS UUID.
    pub uuid: String,
    pub serial: String,
    pub firmware: Firmware,
    pub memory_mib: u32,
    pub accelerator: Accelerator,
    pub mac: String,
    /// Namespace and name of the tap device that is the switch port.
    pub switch_namespace: String,
    pub port: String,
    /// In order; the first one is what the machine boots from.
    pub disks: Vec<Disk>,
    /// Directory of sockets and firmware variables.
    pub dir: PathBuf,
    pub serial_log: PathBuf,
    pub wire: BmcWire,
}

/// How the BMC reaches the chassis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BmcWire {
    /// `ipmi_sim` in the namespace of that path; the guest's KCS goes to its TCP port.
    Ipmi { namespace: String, port: u16 },
    /// sushy-tools in the namespace of that path tells changes to this TCP port.
    Redfish { namespace: String, port: u16 },
}

impl Config {
    /// Where commands go.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("chassis.sock")
    }
}

/// Runs a chassis until SIGTERM; then the machine loses its power.
///
/// # Errors
/// The configuration is unreadable or a socket cannot be opened.
pub fn run(config: &Path) -> Result<()> {
    crate::wait::catch_signals()?;
    let text =
        std::fs::read(config).with_context(|| format!("cannot read {}", config.display()))?;
    let config: Config = serde_json::from_slice(&text)?;
    let machine = qemu::Machine::new(config.clone())?;
    match &config.wire {
        BmcWire::Ipmi { namespace, port } => {
            relay::start(&config.dir.join(qemu::KCS_SOCKET), namespace, *port)?;
        }
        BmcWire::Redfish { namespace, port } => {
            notify::start(machine.clone(), namespace, *port)?;
        }
    }
    server::run(&config.socket(), &machine)
}
