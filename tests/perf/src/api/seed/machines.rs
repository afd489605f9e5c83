//! Leaves and machines of the filled directory, as agents report them.

use anyhow::Result;
use control_state::{
    Bios, BlockDevice, Cpu, DiskWipe, EventKind, Fru, Hardware, MachineEvent, MachineSeen,
    Neighbour, Nic, RegisterMachine, RegisterSwitch, WipeDone,
};
use control_store::Store;
use proto_types::{MacAddr, MachineId};
use uuid::Uuid;

use super::{HALL, propose, room};

/// Machines below one pair of switches.
pub(super) const RACK: u32 = 40;
/// Racks of a room: 1,000 machines.
const ROOM: u32 = 25;

/// Registers leaf `number`: two for each rack.
pub(super) async fn leaf(store: Store, number: u32) -> Result<()> {
    let rack = number / 2;
    let ports = (0..RACK).map(|port| (format!("swp{port}"), None));
    let op = RegisterSwitch {
        id: format!("leaf-{number}").parse()?,
        partition: HALL.parse()?,
        rack: format!("rack-{rack}"),
        room: room(rack / ROOM + 1),
        management_ip: None,
        vtep_ip: None,
        ports: ports.collect(),
        identifiers: Default::default(),
        os_vendor: "linux".into(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: false,
    };
    propose(&store, op).await.map(drop)
}

/// Where a machine's cables go.
#[derive(Clone, Debug)]
pub(crate) struct Cables {
    pub(crate) partition: String,
    pub(crate) leaves: [String; 2],
    pub(crate) port: String,
}

/// Registers machine `number` at its place in the racks.
pub(super) async fn machine(store: Store, number: u32) -> Result<()> {
    let rack = number / RACK;
    let cables = Cables {
        partition: HALL.to_owned(),
        leaves: [0, 1].map(|side| format!("leaf-{}", rack * 2 + side)),
        port: format!("swp{}", number % RACK),
    };
    machine_at(store, number, cables).await
}

/// A machine as pixie and hammer report it first.
pub(crate) async fn register(
    store: &Store,
    number: u32,
    partition: &str,
    hardware: Hardware,
) -> Result<()> {
    let id = machine_id(number);
    let seen = MachineSeen {
        id,
        partition: partition.parse()?,
        mac: hardware.nics.first().map(|nic| nic.mac),
        seen_at: store.now(),
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    propose(store, seen).await?;
    let registration = RegisterMachine {
        id,
        seen_in: None,
        hammer_version: "1.0.0".into(),
        boot_id: format!("boot-{number}"),
        hardware,
        bios: Bios {
            version: "2.4".into(),
            vendor: "Bench".into(),
            date: "01/02/2026".into(),
        },
        fru: Fru::default(),
        bmc_address: String::new(),
        bmc_mac: String::new(),
        bmc_version: String::new(),
    };
    propose(store, registration).await.map(drop)
}

pub(super) fn machine_id(number: u32) -> MachineId {
    MachineId::from(Uuid::from_u128(u128::from(number) + 1))
}

/// A machine as agents report it on its way until it is on offer.
pub(crate) async fn machine_at(store: Store, number: u32, cables: Cables) -> Result<()> {
    let id = machine_id(number);
    let hardware = hardware(number, &cables);
    let disks = hardware.disks.iter().map(|disk| DiskWipe {
        name: disk.name.clone(),
        serial: disk.serial.clone(),
        method: "nvme-format".into(),
        ..DiskWipe::default()
    });
    let disks = disks.collect();
    register(&store, number, &cables.partition, hardware).await?;
    propose(&store, WipeDone { id, disks }).await?;
    let waits = MachineEvent {
        id,
        kind: EventKind::Waiting,
        message: String::new(),
        time: store.now(),
    };
    propose(&store, waits).await.map(drop)
}

fn hardware(number: u32, cables: &Cables) -> Hardware {
    let disk = |name: &str| BlockDevice {
        name: name.into(),
        size: 960 << 30,
        serial: format!("{name}-{number}"),
        ..BlockDevice::default()
    };
    let nic = |side: u8| {
        let [a, b, c, d] = number.to_be_bytes();
        let mac = MacAddr([2, side, a, b, c, d]);
        let leaf = cables.leaves[usize::from(side)].clone();
        Nic {
            name: format!("eth{side}"),
            mac,
            identifier: mac.to_string(),
            vendor: "Bench".into(),
            model: "25G".into(),
            speed: 25_000,
            neighbours: vec![Neighbour {
                chassis_id: leaf.clone(),
                port_id: cables.port.clone(),
                system_name: leaf,
                ..Neighbour::default()
            }],
            boot: side == 0,
        }
    };
    let cpu = Cpu {
        vendor: "Bench".into(),
        model: "32 cores".into(),
        cores: 32,
        threads: 64,
    };
    Hardware {
        memory: 512 << 30,
        cpus: vec![cpu.clone(), cpu],
        disks: vec![disk("/dev/nvme0n1"), disk("/dev/nvme1n1")],
        nics: vec![nic(0), nic(1)],
        ..Hardware::default()
    }
}
