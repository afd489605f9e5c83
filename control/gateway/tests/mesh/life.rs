//! A machine's whole life over the mesh: seen, enrolled, wiped, allocated, installed, handed
//! over, freed. The agents are played by the test.

use std::collections::{BTreeMap, BTreeSet};

use control_state::{
    AgentKind, AllocateMachine, Classification, CreateChildNetwork, CreateImage, CreateNetwork,
    CreateProject, CreateSize, CreateTenant, FreeMachine, Image, ImageFeature, NetworkType, Phase,
    Size, SizeConstraint, SizeConstraintType, WantedNetwork, label,
};
use proto_identity::Key;
use proto_link::{Code, DialError, SessionState};
use proto_mesh::machine_order::Order;
use proto_mesh::*;
use proto_types::{AllocationId, MachineId, ProjectId, Timestamp};
use tokio::time::timeout;
use uuid::Uuid;

use crate::fixture::*;

const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
const MAC: &str = "52:54:00:00:00:01";
const GIB: u64 = 1 << 30;

/// Tenant, project, size, image and networks. Returns the project and its network.
async fn catalogue(control: &Control) -> (ProjectId, String) {
    let project = ProjectId::new(Uuid::now_v7());
    let network = Uuid::now_v7().to_string();
    let tenant: proto_types::TenantId = "acme".parse().unwrap();
    control
        .propose(CreateTenant {
            login: tenant.clone(),
            name: "acme".into(),
            email: String::new(),
            description: String::new(),
            avatar_url: String::new(),
            labels: BTreeMap::new(),
            owner: None,
        })
        .await
        .unwrap();
    control
        .propose(CreateProject {
            id: project,
            tenant,
            name: "web".into(),
            description: String::new(),
            avatar_url: None,
            labels: BTreeMap::new(),
            owner: None,
        })
        .await
        .unwrap();
    let between = |kind, min, max| SizeConstraint {
        kind,
        min,
        max,
        identifier: None,
    };
    let size = Size {
        id: "small".parse().unwrap(),
        meta: Default::default(),
        name: None,
        description: None,
        constraints: vec![
            between(SizeConstraintType::Cores, 1, 4),
            between(SizeConstraintType::Memory, 0, 4 * GIB),
            between(SizeConstraintType::Storage, 0, 100 * GIB),
        ],
    };
    control.propose(CreateSize(size)).await.unwrap();
    let digest = format!("sha256:{}", "ab".repeat(32));
    let image = Image {
        id: "debian-12.0.20260101".parse().unwrap(),
        meta: control_state::Meta::labelled([(label::DIGEST.to_owned(), digest)].into()),
        url: "http://images.example/debian.tar.zst".into(),
        name: None,
        description: None,
        features: BTreeSet::from([ImageFeature::Machine]),
        classification: Classification::Supported,
        expires_at: Timestamp::from_ms(u64::MAX / 2),
    };
    control.propose(CreateImage(image)).await.unwrap();
    let net = |text: &str| text.parse().unwrap();
    control
        .propose(CreateNetwork {
            id: "tenants".parse().unwrap(),
            kind: NetworkType::Super,
            name: None,
            description: None,
            partition: Some("p1".parse().unwrap()),
            project: None,
            labels: BTreeMap::new(),
            prefixes: vec![net("10.64.0.0/16")],
            destination_prefixes: vec![],
            default_child_length: control_state::ChildLength {
                v4: Some(24),
                v6: None,
            },
            min_child_length: Default::default(),
            nat: None,
            vrf: None,
            parent: None,
            additional_announcable_cidrs: vec![],
            length: Default::default(),
            family: None,
        })
        .await
        .unwrap();
    control
        .propose(CreateChildNetwork {
            id: network.parse().unwrap(),
            project,
            name: None,
            description: None,
            labels: BTreeMap::new(),
            partition: Some("p1".parse().unwrap()),
            parent: None,
            length: Default::default(),
            family: None,
        })
        .await
        .unwrap();
    (project, network)
}

async fn allocate(control: &Control, project: ProjectId, network: &str) {
    control
        .propose(AllocateMachine {
            id: AllocationId::new(Uuid::now_v7()),
            project,
            machine: None,
            name: "web-1".into(),
            description: String::new(),
            hostname: None,
            partition: Some("p1".parse().unwrap()),
            size: Some("small".parse().unwrap()),
            image: "debian-12.0.20260101".parse().unwrap(),
            layout: None,
            ssh_public_keys: vec!["ssh-ed25519 AAAA me".into()],
            userdata: "I2Nsb3VkLWNvbmZpZwo=".into(),
            labels: BTreeMap::new(),
            networks: vec![WantedNetwork {
                network: network.parse().unwrap(),
                ips: vec![],
            }],
            placement_labels: BTreeMap::new(),
            dns_servers: vec![],
            ntp_servers: vec![],
            kind: Default::default(),
            firewall_rules: Default::default(),
            seed: 1,
            idempotency: None,
        })
        .await
        .unwrap();
}

/// Boots hammer on the machine: seen, ticket, join.
async fn boot(control: &Control, pixie: &BootServiceClient) -> MachineServiceClient {
    let seen = BootSeenRequest {
        machine_uuid: UUID.into(),
        mac: MAC.into(),
        arch: 7,
        seen_ms: 0,
    };
    pixie.seen(seen).await.unwrap();
    let ask = BootTicketRequest {
        machine_uuid: UUID.into(),
        mac: MAC.into(),
    };
    let ticket = pixie.issue_ticket(ask).await.unwrap();
    let key = Key::generate().unwrap();
    let joined = control
        .join_as(&ticket.ticket_id, &ticket.secret, &key, UUID, MAC)
        .await;
    control.client(Some(&joined.unwrap())).into()
}

fn inventory(boot_id: &str) -> MachineRegisterRequest {
    let neighbour = nic::Neighbour {
        chassis_id: "leaf1".into(),
        port_id: "swp1".into(),
        system_name: "leaf1".into(),
    };
    let nic = Nic {
        name: "eth0".into(),
        mac: MAC.into(),
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

async fn say(hammer: &MachineServiceClient, event: &str) {
    let event = MachineEvent {
        event: event.into(),
        message: String::new(),
        time_ms: 0,
    };
    hammer.event(event).await.unwrap();
}

fn is(wanted: fn(&Order) -> bool) -> impl Fn(&MachineOrder) -> bool {
    move |order| order.order.as_ref().is_some_and(wanted)
}

fn vni(state: &SwitchDesired, port: &str) -> u32 {
    state
        .ports
        .iter()
        .find(|p| p.name == port)
        .expect("a port")
        .vni
}

async fn register_switch(core: &SwitchServiceClient) {
    let port = |n: u32| SwitchPort {
        name: format!("swp{n}"),
        mac: String::new(),
    };
    let ports = vec![port(1), port(2)];
    core.register(SwitchRegisterRequest {
        ports,
        ..Default::default()
    })
    .await
    .unwrap();
}

/// The BMC agent carries out what comes next.
async fn carry_out(
    bmc: &BmcServiceClient,
    orders: &mut proto_mesh::Streaming<BmcDesired>,
    wanted: BmcAction,
    power: &str,
) {
    let state = wait_for(orders, |d| {
        d.orders.first().is_some_and(|o| o.action() == wanted)
    })
    .await;
    let done = BmcOrderDone {
        id: state.orders[0].id.clone(),
        error: String::new(),
        power_state: power.into(),
    };
    bmc.order_done(done).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_lives() {
    let control = Control::start().await;
    let id: MachineId = UUID.parse().unwrap();
    let (project, network) = catalogue(&control).await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    register_switch(&core).await;
    let mut ports = core.desired(SwitchDesiredRequest::default()).await.unwrap();
    let mut bmc_orders = bmc.desired(BmcDesiredRequest {}).await.unwrap();
    let mut boots = pixie.desired(BootDesiredRequest {}).await.unwrap();
    assert_eq!(next(&mut boots).await.control, ["192.0.2.1:4443"]);

    // Unknown, seen, registered, wiped, on offer.
    let hammer = boot(&control, &pixie).await;
    wait_for(&mut boots, |b| {
        b.machines.iter().any(|m| m.machine_uuid == UUID)
    })
    .await;
    say(&hammer, "Preparing").await;
    say(&hammer, "Registering").await;
    let registered = hammer.register(inventory("boot-1")).await.unwrap();
    assert_eq!(
        (registered.size.as_str(), registered.partition.as_str()),
        ("small", "p1")
    );
    let mut orders = hammer
        .orders(MachineOrdersRequest::default())
        .await
        .unwrap();
    wait_for(&mut orders, is(|o| matches!(o, Order::Wipe(_)))).await;
    let wiped = DiskWipe {
        name: "/dev/vda".into(),
        serial: "d1".into(),
        ..Default::default()
    };
    hammer
        .wipe_done(WipeReport {
            disks: vec![wiped.clone()],
        })
        .await
        .unwrap();
    wait_for(&mut orders, is(|o| matches!(o, Order::Wait(_)))).await;
    say(&hammer, "Waiting").await;

    // Allocated and installed.
    let early = hammer
        .project_identity(ProjectIdentityRequest::default())
        .await
        .unwrap_err();
    assert_eq!(early.catalogue(), Some(1207), "nobody has it yet");
    allocate(&control, project, &network).await;
    let order = wait_for(&mut orders, is(|o| matches!(o, Order::Install(_)))).await;
    let Some(Order::Install(install)) = order.order else {
        unreachable!()
    };
    assert_eq!(install.userdata, b"#cloud-config\n");
    assert_eq!(
        install.image.as_ref().unwrap().digest,
        format!("sha256:{}", "ab".repeat(32))
    );
    assert_eq!((install.attempt, install.networks[0].ips.len()), (1, 1));
    assert!(!install.layout.as_ref().unwrap().filesystems.is_empty());
    say(&hammer, "Installing").await;
    let key = Key::generate().unwrap();
    let csr = ProjectIdentityRequest {
        csr: key.request().unwrap(),
    };
    let issued = hammer.project_identity(csr).await.unwrap();
    assert_eq!(
        issued.identity,
        format!("spiffe://mesh.test/project/{project}/machine/{UUID}")
    );
    let answer = Certificate {
        chain: issued.chain,
        roots: issued.roots,
        not_after_ms: issued.not_after_ms,
        identity: issued.identity,
    };
    let installed = control.client(Some(&credential(answer, &key)));
    let home = PhoneHomeServiceClient::from(installed.clone());
    let too_early = home
        .phone_home(PhoneHomeRequest::default())
        .await
        .unwrap_err();
    assert_eq!(too_early.catalogue(), Some(1207), "not installed yet");
    let mut done = InstallReport {
        allocation_uuid: install.allocation_uuid.clone(),
        log_tail: "é".repeat(20_000),
        primary_disk: "/dev/vda".into(),
        ..Default::default()
    };
    hammer.install_done(done.clone()).await.unwrap();
    carry_out(&bmc, &mut bmc_orders, BmcAction::BootDisk, "on").await;
    wait_for(&mut orders, is(|o| matches!(o, Order::Reboot(_)))).await;
    say(&hammer, "Booting New Kernel").await;
    let tenant_vni = install.networks[0].vni;
    assert!(tenant_vni != 0 && tenant_vni != 4000);
    let state = wait_for(&mut ports, |s| vni(s, "swp1") == tenant_vni).await;
    assert_eq!(vni(&state, "swp2"), 4000);
    wait_for(&mut boots, |b| b.machines[0].target() == BootTarget::Disk).await;

    // The installed system is there; it may not speak as hammer, nor hammer as it.
    let interval = home
        .phone_home(PhoneHomeRequest::default())
        .await
        .unwrap()
        .interval_s;
    assert_eq!((interval, control.machine(id).phase), (60, Phase::Running));
    home.phone_home(PhoneHomeRequest::default()).await.unwrap();
    let as_hammer = MachineServiceClient::from(installed.clone());
    let e = as_hammer.event(MachineEvent::default()).await.unwrap_err();
    assert_eq!(e.code(), Code::PermissionDenied);
    let forged = MachineEvent {
        event: "Phoned Home".into(),
        ..Default::default()
    };
    assert_eq!(
        hammer.event(forged).await.unwrap_err().code(),
        Code::PermissionDenied
    );
    let identity = IdentityServiceClient::from(installed.clone());
    identity
        .renew(RenewRequest {
            csr: key.request().unwrap(),
        })
        .await
        .unwrap();

    // Freed: the project's identity ends, power off, port back, boot, wipe.
    control
        .propose(FreeMachine {
            id,
            project: Some(project),
        })
        .await
        .unwrap();
    let mut state = installed.state();
    let revoked =
        |s: &SessionState| matches!(s, SessionState::Down(Some(DialError::Revoked { .. })));
    drop(
        timeout(PATIENCE, state.wait_for(revoked))
            .await
            .unwrap()
            .unwrap(),
    );
    carry_out(&bmc, &mut bmc_orders, BmcAction::PowerOff, "off").await;
    let state = wait_for(&mut ports, |s| vni(s, "swp1") == 4000).await;
    let port = PortState {
        name: "swp1".into(),
        vni: 4000,
        ..Default::default()
    };
    let report = SwitchReport {
        applied_term: state.term,
        applied_generation: state.generation,
        ports: vec![port],
        ..Default::default()
    };
    core.report(report).await.unwrap();
    carry_out(&bmc, &mut bmc_orders, BmcAction::BootPxe, "off").await;
    carry_out(&bmc, &mut bmc_orders, BmcAction::PowerOn, "on").await;
    let hammer = boot(&control, &pixie).await;
    hammer.register(inventory("boot-2")).await.unwrap();
    let mut orders = hammer
        .orders(MachineOrdersRequest::default())
        .await
        .unwrap();
    assert!(matches!(
        next(&mut orders).await.order,
        Some(Order::Wipe(_))
    ));
    assert!(control.machine(id).allocation.is_none() && control.machine(id).dirty);
    let failed = DiskWipe {
        error: "I/O error".into(),
        ..wiped
    };
    hammer
        .wipe_done(WipeReport {
            disks: vec![failed],
        })
        .await
        .unwrap();
    let held = wait_for(&mut orders, is(|o| matches!(o, Order::Hold(_)))).await;
    let Some(Order::Hold(hold)) = held.order else {
        unreachable!()
    };
    assert!(hold.reason.contains("I/O error"), "{}", hold.reason);
    done.error = "late".into();
    assert_eq!(
        hammer.install_done(done).await.unwrap_err().catalogue(),
        Some(1202)
    );
    control.stop().await;
}
