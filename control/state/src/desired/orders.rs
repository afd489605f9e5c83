//! Desired state of hammer: the order of a machine, and the installation with everything it needs.

use std::net::IpAddr;

use proto_types::{AllocationId, Digest, ImageId, MacAddr, MachineId, ProjectId};

use crate::catalog::entity::{BondMode, Disk, Image, Layout, Networking, Partition};
use crate::cluster::read::restored;
use crate::desired::userdata::{UserdataContent, userdata_contents};
use crate::machine::entity::{
    Allocation, AllocationNetwork, AllocationType, Machine, Phase, WipeLevel,
};
use crate::machine::read::is_left_alone;
use crate::tables::Tables;

/// The current order of hammer.
#[derive(Debug, Clone, PartialEq)]
pub enum MachineOrder {
    /// No new order: send nothing.
    Nothing,
    /// Wipe every disk as strongly as it can be, then report.
    Wipe,
    /// Remove partition tables and signatures of every disk, then report: its data may stay.
    WipeMetadata,
    /// Say "Waiting" and stay.
    Wait,
    /// Install.
    Install(Box<InstallOrder>),
    /// Reboot into the installed system.
    Reboot,
    /// Stay up, do nothing.
    Hold {
        /// The reason, for people.
        reason: String,
    },
}

/// An image to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageOrder {
    /// Id.
    pub id: ImageId,
    /// URL of the compressed tar file.
    pub url: String,
    /// Digest of that file; hammer refuses another one.
    pub digest: Digest,
}

/// Everything that an installation needs, except the addresses of control.
#[derive(Clone, PartialEq)]
pub struct InstallOrder {
    /// Allocation.
    pub allocation: AllocationId,
    /// Project of the allocation.
    pub project: ProjectId,
    /// Host name.
    pub hostname: String,
    /// Use of the machine.
    pub kind: AllocationType,
    /// Image.
    pub image: ImageOrder,
    /// Layout; partitions are named `<disk>:<number>` in it.
    pub layout: Layout,
    /// Keys that may log in.
    pub ssh_public_keys: Vec<String>,
    /// User data, base64 as the user gave it.
    pub userdata: String,
    /// Files of a firewall that control makes.
    pub userdata_contents: Vec<UserdataContent>,
    /// Networks.
    pub networks: Vec<AllocationNetwork>,
    /// Name servers.
    pub dns_servers: Vec<IpAddr>,
    /// Time servers.
    pub ntp_servers: Vec<String>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Network of the installed system.
    pub networking: Networking,
    /// Bond of a bridged system.
    pub bond: BondMode,
    /// `true` if every other address is behind the gateway: in an EVPN partition a network's
    /// machines are on several segments and loopbacks, and leaves route between them.
    pub has_host_addresses: bool,
    /// Ethernet MTU inside the segment, bytes. 0 means that it is not known.
    pub mtu: u32,
    /// NICs that are cabled to leaves, in the order of switch and port.
    pub uplinks: Vec<MacAddr>,
}

impl std::fmt::Debug for InstallOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstallOrder")
            .field("allocation", &self.allocation)
            .field("image", &self.image)
            .field("layout", &self.layout.id)
            .field("userdata", &"<redacted>")
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// The current order of hammer on a machine.
pub fn machine_order(tables: &Tables, machine: MachineId) -> MachineOrder {
    let hold = |reason: &str| MachineOrder::Hold {
        reason: reason.to_owned(),
    };
    let Some(machine) = tables.get::<Machine>(&machine) else {
        return hold("the machine is not known");
    };
    // Orders that write to disks.
    let would_write = matches!(machine.phase, Phase::Wiping | Phase::Installing)
        || (machine.phase == Phase::Waiting && machine.dirty);
    // The state may be older than the machine: its disks may hold the data of a tenant that got the
    // machine after the backup.
    if would_write && restored(tables).is_some() {
        return hold("the cluster was restored from a backup and waits for its operator");
    }
    let may_act = would_write || machine.phase.is_reclaim();
    if may_act && is_left_alone(machine) {
        return hold(&format!("locked: {}", machine.condition.description));
    }
    match machine.phase {
        Phase::New => hold("the machine did not register yet"),
        Phase::Wiping => wipe(machine),
        Phase::Waiting if machine.dirty => wipe(machine),
        Phase::Waiting => MachineOrder::Wait,
        Phase::Installing => match &machine.allocation {
            Some(allocation) => install(tables, machine, allocation),
            None => hold("the machine has no allocation"),
        },
        Phase::BootOrder => MachineOrder::Nothing,
        Phase::Rebooting | Phase::TenantPorts | Phase::Running => MachineOrder::Reboot,
        Phase::ReclaimPowerOff
        | Phase::ReclaimPorts
        | Phase::ReclaimBoot
        | Phase::ReclaimRegister => hold("the machine is being reclaimed"),
        Phase::Held(_) => hold(&machine.reason),
    }
}

const fn wipe(machine: &Machine) -> MachineOrder {
    match machine.wipe_level {
        Some(WipeLevel::Metadata) => MachineOrder::WipeMetadata,
        // There is nothing between: each disk is wiped as strongly as it can be.
        Some(WipeLevel::Erase | WipeLevel::Sanitize) | None => MachineOrder::Wipe,
    }
}

fn install(tables: &Tables, machine: &Machine, allocation: &Allocation) -> MachineOrder {
    let image = tables.get::<Image>(&allocation.image);
    let Some((image, digest)) = image.and_then(|image| Some((image, image.digest()?))) else {
        let reason = format!("image {} is gone or has no digest", allocation.image);
        return MachineOrder::Hold { reason };
    };
    let partition = machine.partition.as_ref();
    let partition = partition.and_then(|id| tables.get::<Partition>(id));
    let bond = partition.map(|partition| BondMode::of_partition(&partition.meta.labels));
    // The API refuses other texts. One in the state is older than the label's meaning.
    let bond = match bond.transpose() {
        Ok(bond) => bond.unwrap_or_default(),
        Err(error) => {
            let reason = format!("partition of the machine: {error}");
            return MachineOrder::Hold { reason };
        }
    };
    MachineOrder::Install(Box::new(InstallOrder {
        allocation: allocation.id,
        project: allocation.project,
        hostname: allocation.hostname.clone(),
        kind: allocation.kind,
        image: ImageOrder {
            id: image.id.clone(),
            url: image.url.clone(),
            digest,
        },
        layout: by_partition(&allocation.layout),
        ssh_public_keys: allocation.ssh_public_keys.clone(),
        userdata: allocation.userdata.clone(),
        userdata_contents: userdata_contents(allocation),
        networks: allocation.networks.clone(),
        dns_servers: allocation.dns_servers.clone(),
        ntp_servers: allocation.ntp_servers.clone(),
        attempt: allocation.install.attempt,
        networking: allocation.networking,
        bond,
        has_host_addresses: partition.is_some_and(|partition| partition.has_evpn()),
        mtu: partition.map_or(0, |partition| partition.segment_mtu()),
        uplinks: uplinks(machine),
    }))
}

/// The NICs of the cables that both ends report: only their ports get into the tenant's segment.
fn uplinks(machine: &Machine) -> Vec<MacAddr> {
    let mut links: Vec<_> = machine
        .links
        .iter()
        .filter(|link| !link.unclaimed)
        .collect();
    links.sort_by_key(|link| (&link.switch, &link.port));
    let mut macs: Vec<MacAddr> = Vec::new();
    for link in links {
        if !macs.contains(&link.mac) {
            macs.push(link.mac);
        }
    }
    macs
}

/// The layout with `/dev/sda2` written as `/dev/sda:2`, so that hammer does not have to guess where
/// the disk's name ends.
fn by_partition(layout: &Layout) -> Layout {
    renamed(layout, |disk, _, number| format!("{disk}:{number}"))
}

/// The layout with the first free number for each partition without one (0), in the partition table
/// and in the names of devices.
pub fn numbered(layout: &Layout) -> Layout {
    renamed(layout, |disk, between, number| {
        format!("{disk}{between}{number}")
    })
}

/// The layout with its partitions numbered and its partition devices renamed. `name` gets the disk,
/// the text between disk and number, and the number.
fn renamed(layout: &Layout, name: impl Fn(&str, &str, u32) -> String) -> Layout {
    let mut layout = layout.clone();
    let disks = layout.disks.clone();
    let filesystems = layout.filesystems.iter_mut();
    let filesystems = filesystems.map(|filesystem| &mut filesystem.device);
    let raids = layout.raids.iter_mut().flat_map(|raid| &mut raid.devices);
    let groups = layout.volume_groups.iter_mut();
    let groups = groups.flat_map(|group| &mut group.devices);
    for device in filesystems.chain(raids).chain(groups) {
        *device = device_name(&disks, device, &name);
    }
    for (disk, wanted) in layout.disks.iter_mut().zip(&disks) {
        for partition in &mut disk.partitions {
            partition.number = number_of(wanted, partition.number);
        }
    }
    layout
}

/// The number of a partition. 0 stands for the first that no partition of the disk has.
fn number_of(disk: &Disk, number: u32) -> u32 {
    let is_free = |number: &u32| {
        disk.partitions
            .iter()
            .all(|partition| partition.number != *number)
    };
    match number {
        0 => (1..).find(is_free).unwrap_or(0),
        number => number,
    }
}

/// The new name of a device if it is a partition of one of the disks, or the device unchanged.
fn device_name(disks: &[Disk], device: &str, name: impl Fn(&str, &str, u32) -> String) -> String {
    disks
        .iter()
        .find_map(|disk| {
            let rest = device.strip_prefix(disk.device.as_str())?;
            let digits = rest.strip_prefix(['p', ':']).unwrap_or(rest);
            let number = digits.parse::<u32>().ok()?;
            let is_known = disk.partitions.iter().any(|p| p.number == number);
            let between = &rest[..rest.len() - digits.len()];
            is_known.then(|| name(&disk.device, between, number_of(disk, number)))
        })
        .unwrap_or_else(|| device.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::entity::DiskPartition;
    use crate::catalog::read::default_layout;

    #[test]
    fn partitions_are_named_by_disk_and_number() {
        let partition = |number| DiskPartition {
            number,
            label: None,
            size_mib: 0,
            gpt_type: None,
        };
        let disk = |device: &str| Disk {
            device: device.into(),
            partitions: vec![partition(1), partition(2)],
        };
        let disks = [disk("/dev/sda"), disk("/dev/nvme0n1"), disk("@first")];
        for (device, expected) in [
            ("/dev/sda2", "/dev/sda:2"),
            ("/dev/nvme0n1p1", "/dev/nvme0n1:1"),
            ("/dev/sda3", "/dev/sda3"),
            ("/dev/md1", "/dev/md1"),
            ("/dev/sda:2", "/dev/sda:2"),
            ("@first:1", "@first:1"),
        ] {
            let name = |disk: &str, _: &str, number| format!("{disk}:{number}");
            assert_eq!(device_name(&disks, device, name), expected, "{device}");
        }
    }

    #[test]
    fn the_partition_without_a_number_gets_the_first_free_one() {
        let partition = |number| DiskPartition {
            number,
            label: None,
            size_mib: 1,
            gpt_type: None,
        };
        let disk = |numbers: &[u32]| Disk {
            device: "/dev/sda".into(),
            partitions: numbers.iter().map(|number| partition(*number)).collect(),
        };
        for (numbers, expected) in [
            (&[0][..], "/dev/sda:1"),
            (&[1, 0, 3], "/dev/sda:2"),
            (&[0, 1, 2], "/dev/sda:3"),
        ] {
            let mut layout = default_layout().unwrap();
            layout.disks = vec![disk(numbers)];
            layout.filesystems.truncate(1);
            layout.filesystems[0].device = "/dev/sda0".into();
            let device = |layout: Layout| layout.filesystems[0].device.clone();
            assert_eq!(device(by_partition(&layout)), expected);
            let path = expected.replace(':', "");
            assert_eq!(device(numbered(&layout)), path, "for the published hammer");
        }
        assert_eq!(number_of(&disk(&[0, 7]), 7), 7);
    }
}
