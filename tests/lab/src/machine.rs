//! The lab's machines: a chassis and a BMC each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bmc::{self, Front};
use crate::chassis::{self, Accelerator, BmcWire, Boot, Disk, Fault, Firmware, PowerChange};
use crate::process::Process;
use crate::state::{Record, write_private};
use crate::topology::{Plug, Topology, bmc_address};
use crate::wait::wait_for;

const MEMORY_MIB: u32 = 768;
const DISK_BYTES: u64 = 4 << 30;
/// The first machine has one more disk, so that more than one is wiped.
const SPARE_BYTES: u64 = 64 << 20;
const START: std::time::Duration = std::time::Duration::from_secs(15);

/// A machine of the lab.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Counted from 1.
    pub number: usize,
    pub name: String,
    pub uuid: String,
    pub mac: String,
    pub firmware: Firmware,
    pub memory_mib: u32,
    pub front: Front,
    pub password: String,
    pub disks: Vec<PathBuf>,
    pub serial_log: PathBuf,
    dir: PathBuf,
}

impl Machine {
    /// What the machine of that number is; nothing is made.
    ///
    /// # Errors
    /// The lab's directory is gone.
    pub fn describe(record: &Record, number: usize, redfish: bool) -> Result<Self> {
        let name = format!("m{number}");
        let dir = record.path(&format!("{name}/x"))?.with_file_name("");
        let even = number.is_multiple_of(2);
        let mut disks = vec![dir.join("disk1.raw")];
        if number == 1 {
            disks.push(dir.join("disk2.raw"));
        }
        Ok(Self {
            number,
            // Ours by the version and variant bits, and easy to tell apart.
            uuid: format!("6f1c{number:04x}-0000-4000-8000-5254007701{number:02x}"),
            mac: format!("52:54:00:77:01:{number:02x}"),
            firmware: if even { Firmware::Uefi } else { Firmware::Bios },
            memory_mib: MEMORY_MIB,
            front: if even && redfish {
                Front::Redfish
            } else {
                Front::Ipmi
            },
            password: bmc::password(),
            disks,
            serial_log: record.log(&format!("{name}-serial"))?,
            dir,
            name,
        })
    }

    /// Where commands to the chassis go.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("chassis.sock")
    }

    /// Makes disks, chassis, switch port and BMC. The machine is off.
    ///
    /// # Errors
    /// A part does not come up.
    pub fn build(
        &self,
        record: &Record,
        topology: &Topology,
        accelerator: Accelerator,
        sushy: Option<&Path>,
    ) -> Result<()> {
        let plug = topology.add_port(self.number)?;
        self.build_at(&plug, record, topology, accelerator, sushy)
    }

    /// The same at a port that is there.
    ///
    /// # Errors
    /// A part does not come up.
    pub fn build_at(
        &self,
        plug: &Plug,
        record: &Record,
        topology: &Topology,
        accelerator: Accelerator,
        sushy: Option<&Path>,
    ) -> Result<()> {
        for (number, disk) in self.disks.iter().enumerate() {
            let size = if number == 0 { DISK_BYTES } else { SPARE_BYTES };
            fs::File::create(disk)?.set_len(size)?;
        }
        let namespace = topology.add_bmc(record, self.number)?;
        let wire = match self.front {
            Front::Ipmi => BmcWire::Ipmi {
                namespace: namespace.path(),
                port: bmc::KCS_PORT,
            },
            Front::Redfish => BmcWire::Redfish {
                namespace: namespace.path(),
                port: bmc::NOTIFY_PORT,
            },
        };
        self.start_chassis(record, plug, accelerator, wire)?;
        let machine = bmc::Machine {
            name: &self.name,
            uuid: &self.uuid,
            mac: &self.mac,
            address: bmc_address(self.number),
            password: &self.password,
            socket: &self.socket(),
        };
        match (self.front, sushy) {
            (Front::Redfish, Some(sushy)) => {
                bmc::start_redfish(record, &namespace, &machine, sushy)?;
            }
            _ => {
                bmc::start_ipmi(record, &namespace, &machine)?;
            }
        }
        Ok(())
    }

    fn start_chassis(
        &self,
        record: &Record,
        plug: &Plug,
        accelerator: Accelerator,
        wire: BmcWire,
    ) -> Result<()> {
        let config = chassis::Config {
            name: self.name.clone(),
            uuid: self.uuid.clone(),
            serial: format!("SER-{}", self.name.to_uppercase()),
            firmware: self.firmware,
            memory_mib: self.memory_mib,
            accelerator,
            mac: self.mac.clone(),
            switch_namespace: plug.namespace.name().to_owned(),
            port: plug.port.clone(),
            disks: self
                .disks
                .iter()
                .enumerate()
                .map(|(n, path)| Disk {
                    path: path.clone(),
                    serial: format!("{}D{}", self.name, n + 1),
                })
                .collect(),
            dir: self.dir.clone(),
            serial_log: self.serial_log.clone(),
            wire,
        };
        let file = self.dir.join("chassis.json");
        write_private(&file, &serde_json::to_vec_pretty(&config)?)?;
        let mut command = Command::new(record.state().program);
        command.args(["lab", "chassis"]).arg(&file);
        let process = Process::spawn(record, &format!("chassis-{}", self.name), command)?;
        wait_for("chassis", START, || {
            process.check()?;
            Ok(self.status().ok())
        })?;
        Ok(())
    }

    /// # Errors
    /// The chassis does not answer.
    pub fn status(&self) -> Result<chassis::Status> {
        chassis::call(&self.socket(), chassis::Command::Status)
    }

    /// Changes the power behind the BMC's back: pulls the plug, for one.
    ///
    /// # Errors
    /// The chassis does not answer.
    pub fn power(&self, change: PowerChange) -> Result<()> {
        chassis::call(&self.socket(), chassis::Command::Power(change)).map(|_| ())
    }

    /// # Errors
    /// The chassis does not answer.
    pub fn set_boot(&self, boot: Boot) -> Result<()> {
        chassis::call(&self.socket(), chassis::Command::Boot(boot)).map(|_| ())
    }

    /// # Errors
    /// The chassis does not answer.
    pub fn break_it(&self, fault: Fault) -> Result<()> {
        chassis::call(&self.socket(), chassis::Command::Fault(fault)).map(|_| ())
    }

    /// Whether some bytes are anywhere on the disks.
    ///
    /// # Errors
    /// A disk cannot be read.
    pub fn disks_hold(&self, marker: &[u8]) -> Result<bool> {
        for disk in &self.disks {
            if crate::disk::holds(disk, marker)
                .with_context(|| format!("cannot search {}", disk.display()))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Bytes that the disks take on the host.
    #[must_use]
    pub fn disks_used(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let blocks = |path: &PathBuf| fs::metadata(path).map_or(0, |m| m.blocks());
        self.disks.iter().map(blocks).sum::<u64>() * 512
    }
}
