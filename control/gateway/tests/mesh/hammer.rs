//! A machine that the test plays: how it boots, what it says of itself, and what its leaf hears.

use proto_identity::Key;
use proto_link::MeshClient;
use proto_mesh::machine_order::Order;
use proto_mesh::*;

use crate::catalogue::GIB;
use crate::fixture::*;

pub(crate) const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
pub(crate) const MAC: &str = "52:54:00:00:00:01";

/// Boots hammer on the machine: seen, ticket, join.
pub(crate) async fn boot(control: &Control, pixie: &BootServiceClient) -> MachineServiceClient {
    boot_as(control, pixie, UUID, MAC).await
}

/// The same on a machine that says that it is this one.
pub(crate) async fn boot_as(
    control: &Control,
    pixie: &BootServiceClient,
    uuid: &str,
    mac: &str,
) -> MachineServiceClient {
    session_as(control, pixie, uuid, mac).await.into()
}

/// Hammer's session after such a boot.
pub(crate) async fn session_as(
    control: &Control,
    pixie: &BootServiceClient,
    uuid: &str,
    mac: &str,
) -> MeshClient {
    let seen = seen_at_boot(uuid, mac);
    pixie.seen(seen).await.unwrap();
    let ask = BootTicketRequest {
        machine_uuid: uuid.into(),
        mac: mac.into(),
    };
    let ticket = pixie.issue_ticket(ask).await.unwrap();
    let key = Key::generate().unwrap();
    let joined = control
        .join_as(&ticket.ticket_id, &ticket.secret, &key, uuid, mac)
        .await;
    control.client(Some(&joined.unwrap()))
}

pub(crate) fn inventory(boot_id: &str) -> MachineRegisterRequest {
    inventory_at(boot_id, MAC, "swp1")
}

/// The hardware of a machine that hears this port.
pub(crate) fn inventory_at(boot_id: &str, mac: &str, port: &str) -> MachineRegisterRequest {
    let neighbour = nic::Neighbour {
        chassis_id: "leaf1".into(),
        port_id: port.into(),
        system_name: "leaf1".into(),
    };
    let nic = Nic {
        name: "eth0".into(),
        mac: mac.into(),
        neighbours: vec![neighbour],
        boot: true,
        ..Default::default()
    };
    let disk = BlockDevice {
        name: "/dev/vda".into(),
        size: 10 * GIB,
        serial: "d1".into(),
        ..Default::default()
    };
    MachineRegisterRequest {
        boot_id: boot_id.into(),
        memory: GIB,
        cpus: vec![Cpu {
            cores: 1,
            threads: 1,
            ..Default::default()
        }],
        disks: vec![disk],
        nics: vec![nic],
        firmware: Firmware::Uefi.into(),
        ..Default::default()
    }
}

/// The leaf hears these addresses on its port.
pub(crate) async fn hear(core: &SwitchServiceClient, port: &str, macs: &[&str]) {
    let neighbour = |mac: &&str| LldpNeighbour {
        mac: (*mac).to_owned(),
        ..Default::default()
    };
    let port = PortState {
        name: port.into(),
        vni: 4000,
        neighbours: macs.iter().map(neighbour).collect(),
        ..Default::default()
    };
    let report = SwitchReport {
        ports: vec![port],
        ..Default::default()
    };
    core.report(report).await.unwrap();
}

pub(crate) async fn say(hammer: &MachineServiceClient, event: &str) {
    let event = MachineEvent {
        event: event.into(),
        message: String::new(),
        time_ms: 0,
    };
    hammer.event(event).await.unwrap();
}

pub(crate) fn is(wanted: fn(&Order) -> bool) -> impl Fn(&MachineOrder) -> bool {
    move |order| order.order.as_ref().is_some_and(wanted)
}

pub(crate) fn vni(state: &SwitchDesired, port: &str) -> u32 {
    state
        .ports
        .iter()
        .find(|p| p.name == port)
        .expect("a port")
        .vni
}

pub(crate) fn wiped() -> DiskWipe {
    DiskWipe {
        name: "/dev/vda".into(),
        serial: "d1".into(),
        ..Default::default()
    }
}
