//! The published stack's agents, as far as several tests play them: the boot server, the installer
//! and the receiver of BMC commands.

use control_state::{Machine, Phase};
use infra::bmc_service_client::BmcServiceClient;
use infra::boot_service_client::BootServiceClient;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use tonic::Streaming;

use crate::node::{Node, wanted_machine};
use crate::published_switch::register_leaf;

pub(crate) const UUID: &str = "00000000-0000-4000-8000-000000000001";
pub(crate) const OTHER: &str = "00000000-0000-4000-8000-000000000002";
pub(crate) const MAC: &str = "02:00:00:00:00:01";
pub(crate) const PASSWORD: &str = "hammers-secret";

/// A token of an agent, bound to a partition or to none.
pub(crate) async fn agent(node: &Node, partition: Option<&str>) -> String {
    let label = |id: &str| ("metalmesh.dev/partition".to_owned(), id.to_owned());
    let wanted = api::TokenServiceCreateRequest {
        infra_role: Some(api::InfraRole::Editor.into()),
        labels: Some(api::Labels {
            labels: partition.map(label).into_iter().collect(),
        }),
        ..Default::default()
    };
    node.token_of("metal-stack", wanted).await.1
}

/// The boot server's part: the machine shows up and gets a token, which is of that id.
pub(crate) async fn token_of(node: &Node, agent: &str, uuid: &str) -> (String, String) {
    let mut boot = BootServiceClient::new(node.wire(Some(agent)));
    let request = infra::BootServiceDhcpRequest {
        uuid: uuid.into(),
        partition: "lab".into(),
    };
    boot.dhcp(request).await.unwrap();
    let made = boot
        .machine_token(token_request(uuid))
        .await
        .unwrap()
        .into_inner();
    (made.token.unwrap().uuid, made.secret)
}

/// Pixiecore's request for a machine's token.
pub(crate) fn token_request(uuid: &str) -> infra::BootServiceMachineTokenRequest {
    infra::BootServiceMachineTokenRequest {
        uuid: uuid.into(),
        user: "pixiecore".into(),
        expires: Some(prost_types::Duration {
            seconds: 3600,
            nanos: 0,
        }),
        labels: None,
    }
}

#[expect(deprecated, reason = "published agents write this field")]
pub(crate) fn registration(uuid: &str) -> infra::BootServiceRegisterRequest {
    // It hears the switches by the name that LLDP has for the port. The second one is not managed.
    let nic = |name: &str, mac: &str, switch: &str| api::MachineNic {
        mac: mac.into(),
        name: name.into(),
        neighbors: vec![api::MachineNic {
            name: "Eth1/1".into(),
            identifier: "Eth1/1".into(),
            hostname: switch.into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let nics = vec![
        nic("eth0", MAC, "leaf9"),
        nic("eth1", "02:00:00:00:02:01", "spare9"),
    ];
    infra::BootServiceRegisterRequest {
        uuid: uuid.into(),
        hardware: Some(api::MachineHardware {
            memory: 1 << 30,
            disks: vec![api::MachineBlockDevice {
                name: "/dev/sda".into(),
                size: 20 << 30,
            }],
            cpus: vec![api::MetalCpu {
                cores: 2,
                threads: 2,
                ..Default::default()
            }],
            nics,
            ..Default::default()
        }),
        bios: Some(api::MachineBios::default()),
        bmc: Some(api::MachineBmc {
            address: "10.9.0.1:623".into(),
            mac: "02:00:00:00:09:01".into(),
            user: "metal".into(),
            password: PASSWORD.into(),
            ..Default::default()
        }),
        fru: None,
        tags: Vec::new(),
        metal_hammer_version: "v0.14".into(),
        partition: "lab".into(),
    }
}

pub(crate) async fn wait(node: &Node, token: &str) -> Streaming<infra::BootServiceWaitResponse> {
    let mut boot = BootServiceClient::new(node.wire(Some(token)));
    let request = infra::BootServiceWaitRequest { uuid: UUID.into() };
    boot.wait(request).await.unwrap().into_inner()
}

pub(crate) async fn commands(
    node: &Node,
    token: &str,
) -> Streaming<infra::WaitForBmcCommandResponse> {
    let mut bmc = BmcServiceClient::new(node.wire(Some(token)));
    let request = infra::WaitForBmcCommandRequest {
        partition: "lab".into(),
    };
    let open = bmc.wait_for_bmc_command(request).await;
    open.unwrap().into_inner()
}

pub(crate) fn phase(node: &Node) -> Phase {
    let id = UUID.parse().unwrap();
    let phase = |t: &control_state::Tables| t.get::<Machine>(&id).unwrap().phase;
    node.store.read_local(phase).unwrap()
}

pub(crate) fn event(kind: api::MachineProvisioningEventType) -> api::MachineProvisioningEvent {
    api::MachineProvisioningEvent {
        event: kind.into(),
        message: String::new(),
        time: None,
    }
}

/// A waiting machine of the published stack: its hammer's token and its stream.
pub(crate) async fn waiting(
    node: &Node,
    agent: &str,
) -> (String, String, Streaming<infra::BootServiceWaitResponse>) {
    register_leaf(node, agent, "leaf9").await;
    let (id, token) = token_of(node, agent, UUID).await;
    let mut boot = BootServiceClient::new(node.wire(Some(&token)));
    let registered = boot.register(registration(UUID)).await.unwrap();
    let registered = registered.into_inner();
    assert_eq!(
        (registered.size.as_str(), registered.partition.as_str()),
        ("small", "lab")
    );
    assert_eq!(phase(node), Phase::Wiping, "nobody said that it is clean");
    let stream = wait(node, &token).await;
    assert_eq!(phase(node), Phase::Waiting);
    (id, token, stream)
}

pub(crate) async fn create(node: &Node, project: &str, token: &str, network: &str) -> api::Machine {
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(token)));
    let request = api::MachineServiceCreateRequest {
        userdata: Some("I2Nsb3VkLWNvbmZpZwo=".into()),
        ..wanted_machine(project, network, "web-1")
    };
    let made = machines.create(request).await.unwrap().into_inner();
    made.machine.unwrap()
}
