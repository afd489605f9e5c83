//! What a machine is made of, as hammer and its BMC tell it.

use proto_types::{MacAddr, Timestamp};
use serde::{Deserialize, Serialize};

use crate::switch::entity::Neighbour;
use crate::{blob, bounds};

/// A CPU socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Maker.
    pub vendor: String,
    /// Model name.
    pub model: String,
    /// Physical cores.
    pub cores: u32,
    /// Hardware threads.
    pub threads: u32,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Maker.
    pub vendor: String,
    /// Model name.
    pub model: String,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockDevice {
    /// Device path, `/dev/vda`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Serial number; empty when the disk does not tell.
    pub serial: String,
    /// Model name.
    pub model: String,
    /// Whether it spins.
    pub rotational: bool,
    /// Whether it is removable: never wiped, never installed to.
    pub removable: bool,
}

impl BlockDevice {
    /// Whether it is a disk that data may lie on and that a system may be installed to.
    pub fn is_fixed(&self) -> bool {
        !self.removable && self.size > 0
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Kernel name.
    pub name: String,
    /// Address.
    pub mac: MacAddr,
    /// PCI address or bus name.
    #[serde(default)]
    pub identifier: String,
    /// Maker.
    #[serde(default)]
    pub vendor: String,
    /// Model name.
    #[serde(default)]
    pub model: String,
    /// Mbit/s; 0 when unknown.
    #[serde(default)]
    pub speed: u64,
    /// Whom it hears.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// Whether the machine booted over it.
    #[serde(default)]
    pub boot: bool,
}

/// How the firmware boots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Firmware {
    /// Not told yet.
    #[default]
    Unknown,
    /// Legacy BIOS.
    Bios,
    /// UEFI.
    Uefi,
}

/// What the machine is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// Bytes.
    pub memory: u64,
    /// CPU sockets.
    pub cpus: Vec<Cpu>,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// Disks.
    pub disks: Vec<BlockDevice>,
    /// Network interfaces.
    pub nics: Vec<Nic>,
    /// How it boots.
    pub firmware: Firmware,
}

/// Firmware's own identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bios {
    /// Version.
    pub version: String,
    /// Maker.
    pub vendor: String,
    /// Date as the firmware writes it.
    pub date: String,
}

/// Field-replaceable-unit data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fru {
    /// Chassis part number.
    pub chassis_part_number: String,
    /// Chassis serial number.
    pub chassis_part_serial: String,
    /// Board maker.
    pub board_mfg: String,
    /// Board serial number.
    pub board_mfg_serial: String,
    /// Board part number.
    pub board_part_number: String,
    /// Product maker.
    pub product_manufacturer: String,
    /// Product part number, or its name.
    pub product_part_number: String,
    /// Product serial number.
    pub product_serial: String,
}

impl Fru {
    /// Takes what the other knows and this does not.
    pub(crate) fn fill_from(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.chassis_part_number, &other.chassis_part_number),
            (&mut self.chassis_part_serial, &other.chassis_part_serial),
            (&mut self.board_mfg, &other.board_mfg),
            (&mut self.board_mfg_serial, &other.board_mfg_serial),
            (&mut self.board_part_number, &other.board_part_number),
            (&mut self.product_manufacturer, &other.product_manufacturer),
            (&mut self.product_part_number, &other.product_part_number),
            (&mut self.product_serial, &other.product_serial),
        ] {
            if mine.is_empty() {
                mine.clone_from(theirs);
            }
        }
    }
}

/// How a BMC lets an agent of the published stack in, which is told by whom it asks for orders.
/// Agents of ours know it themselves.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcAccess {
    /// Login.
    pub user: String,
    /// Its password under the cluster's key; opaque here.
    #[serde(with = "blob")]
    pub sealed_password: Vec<u8>,
}

impl std::fmt::Debug for BmcAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BmcAccess")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Bmc {
    /// Whether a BMC agent read it; else hammer saw its address in band.
    pub fn was_read(&self) -> bool {
        self.updated_at > Timestamp::ZERO
    }

    /// Whether `address` is the address of this BMC, with any port.
    pub fn is_at(&self, address: &str) -> bool {
        bmc_host(&self.address) == bmc_host(address)
    }
}

/// The host of `host:port` or of a bare address.
pub fn bmc_host(address: &str) -> &str {
    let is_bare = address.parse::<std::net::IpAddr>().is_ok();
    match address.rsplit_once(':') {
        Some((host, _)) if !is_bare => host.trim_matches(['[', ']']),
        _ => address,
    }
}

/// What is known of a machine's BMC, beside how it lets somebody in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bmc {
    /// host:port, or the bare address that hammer saw in band.
    pub address: String,
    /// Address; empty when unknown.
    pub mac: String,
    /// `redfish` or `ipmi`; empty when unknown.
    pub interface: String,
    /// Firmware version.
    pub version: String,
    /// `on`, `off` or `unknown`.
    pub power_state: String,
    /// The user that our agent logs in as; empty when unknown. Those of the published agents are
    /// kept with their passwords.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the machine draws; none when its agent does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// Why the BMC could not be read the last time.
    pub error: Option<String>,
    /// When the agent last read it.
    pub updated_at: Timestamp,
}

/// A BMC that tells a machine's UUID, beside the one that is believed to be the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcClaim {
    /// host:port.
    pub address: String,
    /// MAC address; empty when unknown.
    #[serde(default)]
    pub mac: String,
    /// First report of it.
    pub since: Timestamp,
    /// Last report of it that was written.
    pub seen_at: Timestamp,
    /// `true` if an operator confirmed another BMC while this one claimed the machine.
    #[serde(default)]
    pub rejected: bool,
}

/// The electric power that a machine draws, and what it draws it by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draw {
    /// None when the BMC does not measure.
    pub metric: Option<PowerMetric>,
    /// Of the machine or of the chassis it shares.
    pub supplies: Vec<PowerSupply>,
}

impl Draw {
    /// Power supplies of one machine that are kept: more than any chassis has.
    pub const SUPPLIES_MAX: usize = 32;
    /// Longest health or state of a supply that is kept, bytes; Redfish's own words have 20 at most.
    pub const WORD_LEN_MAX: usize = 64;
    /// Largest power that is kept, mW: a megawatt.
    pub const MW_MAX: u64 = 1_000_000_000;
    /// Longest interval that is kept, thousandths of a minute: a year.
    pub const MILLIMINUTES_MAX: u64 = 525_600_000;

    /// The same within its bounds. Reports are cut before they are compared with what is stored: one
    /// that is cut later would differ each time, and be written each time.
    #[must_use]
    pub fn clipped(mut self) -> Self {
        if let Some(metric) = &mut self.metric {
            for power in [
                &mut metric.average_mw,
                &mut metric.max_mw,
                &mut metric.min_mw,
            ] {
                *power = Self::MW_MAX.min(*power);
            }
            let interval = &mut metric.interval_milliminutes;
            *interval = Self::MILLIMINUTES_MAX.min(*interval);
        }
        self.supplies.truncate(Self::SUPPLIES_MAX);
        for supply in &mut self.supplies {
            for word in [&mut supply.health, &mut supply.state] {
                word.truncate(bounds::clip(word, Self::WORD_LEN_MAX).len());
            }
        }
        self
    }
}

/// What a BMC measured over some time, as Redfish's `PowerMetrics` (DSP0268, Power): in
/// thousandths of its units, because state is compared and a fraction would not be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PowerMetric {
    /// Mean, mW.
    pub average_mw: u64,
    /// Over how long, thousandths of a minute.
    pub interval_milliminutes: u64,
    /// Highest, mW.
    pub max_mw: u64,
    /// Lowest, mW.
    pub min_mw: u64,
}

/// One power supply, in Redfish's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PowerSupply {
    /// `OK`, `Warning`, `Critical`.
    pub health: String,
    /// `Enabled`, `Absent`, ...
    pub state: String,
}
