//! The published stack's agents against a node: the way of a machine from its first packet to a
//! tenant's system, and what each of them must not do.

use control_state::{EventLog, Phase};
use infra::bmc_service_client::BmcServiceClient;
use infra::boot_service_client::BootServiceClient;
use infra::event_service_client::EventServiceClient;
use infra::switch_service_client::SwitchServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use tonic::Code;

use crate::node::Node;
use crate::published_agents::*;
use crate::published_switch::register_leaf;

#[tokio::test(flavor = "multi_thread")]
async fn from_the_first_packet_to_a_tenants_system() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, owner) = node.tenant("acme").await;
    let network = node.network(&owner, &project).await;
    let agent = agent(&node, Some("lab")).await;
    let mut boot = BootServiceClient::new(node.wire(Some(&agent)));
    let request = infra::BootServiceBootRequest {
        mac: MAC.into(),
        partition: "lab".into(),
    };
    let answer = boot.boot(request.clone()).await.unwrap().into_inner();
    assert_eq!(answer.init_ram_disks.len(), 1);

    let (_, token, mut stream) = waiting(&node, &agent).await;
    let made = create(&node, &project, &owner, &network).await;
    assert_eq!(made.uuid, UUID);
    let order = stream.message().await.unwrap().unwrap().allocation.unwrap();
    assert_eq!(order.project, project);
    assert_eq!(order.userdata, "I2Nsb3VkLWNvbmZpZwo=");
    let layout = order.filesystem_layout.as_ref().unwrap();
    assert_eq!(layout.disks[0].device, "/dev/sda");
    assert_eq!(layout.filesystems[0].device, "/dev/sda2");
    // Whoever comes back is told again.
    drop(stream);
    let mut stream = wait(&node, &token).await;
    let again = stream.message().await.unwrap().unwrap().allocation.unwrap();
    assert_eq!(again, order);

    let mut hammer = BootServiceClient::new(node.wire(Some(&token)));
    let send = |kind| infra::BootServiceSendEventRequest {
        uuid: UUID.into(),
        event: Some(event(kind)),
    };
    use api::MachineProvisioningEventType as Kind;
    hammer.send_event(send(Kind::Installing)).await.unwrap();
    let early = hammer.send_event(send(Kind::PhonedHome)).await.unwrap_err();
    assert_eq!(early.code(), Code::InvalidArgument);
    let done = infra::BootServiceInstallationSucceededRequest {
        uuid: UUID.into(),
        console_password: "console".into(),
    };
    hammer.installation_succeeded(done).await.unwrap();
    assert_eq!(phase(&node), Phase::BootOrder);
    boot_from_disk(&node, &agent).await;
    let refused = boot.boot(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    hammer
        .send_event(send(Kind::BootingNewKernel))
        .await
        .unwrap();
    let mut events = EventServiceClient::new(node.wire(Some(&agent)));
    let home = infra::EventServiceSendRequest {
        events: [(UUID.to_owned(), event(Kind::PhonedHome))].into(),
    };
    assert_eq!(events.send(home).await.unwrap().into_inner().events, 1);
    assert_eq!(phase(&node), Phase::TenantPorts);
    announcements(&node, &agent).await;
    assert_eq!(phase(&node), Phase::Running);
    node.stop().await;
}

/// The BMC agent's part, which it is told how to do.
async fn boot_from_disk(node: &Node, agent: &str) {
    let mut stream = commands(node, agent).await;
    let first = stream.message().await.unwrap().unwrap();
    drop(stream);
    // Not done yet, so whoever comes back is told again.
    let mut stream = commands(node, agent).await;
    let order = stream.message().await.unwrap().unwrap();
    assert_eq!(order, first);
    assert_eq!(order.uuid, UUID);
    assert_eq!(order.bmc_command(), api::MachineBmcCommand::BootFromDisk);
    let bmc = order.machine_bmc.unwrap();
    assert_eq!(
        (
            bmc.address.as_str(),
            bmc.user.as_str(),
            bmc.password.as_str()
        ),
        ("10.9.0.1:623", "metal", PASSWORD)
    );
    let mut bmc = BmcServiceClient::new(node.wire(Some(agent)));
    let done = infra::BmcCommandDoneRequest {
        command_id: order.command_id,
        error: None,
    };
    bmc.bmc_command_done(done.clone()).await.unwrap();
    bmc.bmc_command_done(done).await.unwrap();
    assert_eq!(phase(node), Phase::Rebooting);
}

/// The switch's part: the port is the tenant's.
async fn announcements(node: &Node, agent: &str) {
    let mut switches = SwitchServiceClient::new(node.wire(Some(agent)));
    let request = infra::SwitchServiceGetRequest { id: "leaf9".into() };
    let shown = switches.get(request).await.unwrap().into_inner();
    let shown = shown.switch.unwrap();
    let done = infra::SwitchServiceHeartbeatRequest {
        id: "leaf9".into(),
        ..Default::default()
    };
    switches.heartbeat(done).await.unwrap();
    assert_eq!(shown.machine_connections.len(), 1);
    let port = &shown.nics[0];
    assert_eq!(
        (port.name.as_str(), port.identifier.as_str()),
        ("Ethernet0", "Eth1/1")
    );
    assert!(port.vrf.as_ref().is_some_and(|vrf| vrf.starts_with("vrf")));
    let filter = port.bgp_filter.as_ref().unwrap();
    assert_eq!(filter.cidrs, ["10.128.0.0/24"]);
    assert_eq!(shown.nics[1].vrf, None, "nobody's machine boots there");
    assert!(shown.nics[1].bgp_filter.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_for_those_who_may_and_end_with_the_right() {
    let node = Node::start().await;
    node.data_centre().await;
    let (_, owner) = node.tenant("acme").await;
    let agent = agent(&node, None).await;
    let (id, token, mut stream) = waiting(&node, &agent).await;
    let wait = infra::BootServiceWaitRequest { uuid: UUID.into() };
    let listen = infra::WaitForBmcCommandRequest {
        partition: "lab".into(),
    };
    let strangers = [
        (None, Code::PermissionDenied),
        (Some(&owner), Code::PermissionDenied),
    ];
    for (who, code) in strangers {
        let wire = node.wire(who.map(String::as_str));
        let mut boot = BootServiceClient::new(wire.clone());
        assert_eq!(boot.wait(wait.clone()).await.unwrap_err().code(), code);
        let mut bmc = BmcServiceClient::new(wire);
        let refused = bmc.wait_for_bmc_command(listen.clone()).await.unwrap_err();
        assert_eq!(refused.code(), code);
    }
    // An agent waits for no machine, and a machine for no BMC.
    let mut boot = BootServiceClient::new(node.wire(Some(&agent)));
    let refused = boot.wait(wait).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let mut bmc = BmcServiceClient::new(node.wire(Some(&token)));
    let refused = bmc.wait_for_bmc_command(listen).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    let mut tokens = admin::token_service_client::TokenServiceClient::new(node.as_admin());
    let revoke = admin::TokenServiceRevokeRequest {
        uuid: id,
        user: "pixiecore".into(),
    };
    tokens.revoke(revoke).await.unwrap();
    let ended = stream.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machines_token_speaks_for_that_machine_only() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let (_, token, _stream) = waiting(&node, &agent).await;
    // One that is there and one that is not look the same.
    node.waiting_machine(2).await;
    let there = uuid::Uuid::from_u128(2).to_string();
    let mut boot = BootServiceClient::new(node.wire(Some(&token)));
    let mut answers = Vec::new();
    for uuid in [there.as_str(), OTHER] {
        let refused = [
            boot.register(registration(uuid)).await.unwrap_err(),
            boot.super_user_password(infra::BootServiceSuperUserPasswordRequest {
                uuid: uuid.into(),
            })
            .await
            .unwrap_err(),
            boot.installation_succeeded(infra::BootServiceInstallationSucceededRequest {
                uuid: uuid.into(),
                console_password: "console".into(),
            })
            .await
            .unwrap_err(),
        ];
        for refused in &refused {
            assert_eq!(refused.code(), Code::NotFound, "{refused}");
        }
        answers.push(refused.map(|it| it.message().replace(uuid, "<uuid>")));
    }
    assert_eq!(answers[0], answers[1]);
    let own = infra::BootServiceSuperUserPasswordRequest { uuid: UUID.into() };
    let own = boot.super_user_password(own).await.unwrap().into_inner();
    assert!(own.feature_disabled && own.super_user_password.is_empty());
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_agent_speaks_for_its_partition_only() {
    let node = Node::start().await;
    node.data_centre().await;
    let mine = agent(&node, Some("elsewhere")).await;
    let uuid = node.waiting_machine(1).await;
    register_leaf(&node, &node.admin.clone(), "leaf9").await;
    let mut boot = BootServiceClient::new(node.wire(Some(&mine)));
    for partition in ["lab", "nowhere"] {
        let request = infra::BootServiceDhcpRequest {
            uuid: uuid.clone(),
            partition: partition.into(),
        };
        let refused = boot.dhcp(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    }
    let refused = boot.machine_token(token_request(&uuid)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let mut bmc = BmcServiceClient::new(node.wire(Some(&mine)));
    let request = infra::WaitForBmcCommandRequest {
        partition: "lab".into(),
    };
    let refused = bmc.wait_for_bmc_command(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let mut switches = SwitchServiceClient::new(node.wire(Some(&mine)));
    for id in ["leaf9", "leaf77"] {
        let request = infra::SwitchServiceGetRequest { id: id.into() };
        let refused = switches.get(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{refused}");
    }
    let mut events = EventServiceClient::new(node.wire(Some(&mine)));
    let crashed = event(api::MachineProvisioningEventType::Crashed);
    let request = infra::EventServiceSendRequest {
        events: [(uuid.clone(), crashed)].into(),
    };
    let answer = events.send(request).await.unwrap().into_inner();
    assert_eq!((answer.events, answer.failed), (0, vec![uuid]));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_without_hardware_bios_or_a_second_switch_is_refused() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    register_leaf(&node, &agent, "leaf9").await;
    let (_, token) = token_of(&node, &agent, UUID).await;
    let mut hammer = BootServiceClient::new(node.wire(Some(&token)));
    type Change = fn(&mut infra::BootServiceRegisterRequest);
    let nics = |request: &mut infra::BootServiceRegisterRequest, count: usize| {
        let hardware = request.hardware.as_mut().unwrap();
        hardware.nics.truncate(count);
    };
    let mut refused = async |change: Change, nics_left: usize| {
        let mut request = registration(UUID);
        nics(&mut request, nics_left);
        change(&mut request);
        let refused = hammer.register(request).await.unwrap_err();
        assert_eq!(phase(&node), Phase::New, "nothing of it was taken");
        refused.code()
    };
    assert_eq!(
        refused(|it| it.hardware = None, 2).await,
        Code::InvalidArgument
    );
    assert_eq!(refused(|it| it.bios = None, 2).await, Code::InvalidArgument);
    for nics_left in [0, 1] {
        assert_eq!(refused(|_| {}, nics_left).await, Code::FailedPrecondition);
    }
    // Where machines have one uplink, the partition says so.
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let labels = [("metalmesh.dev/uplinks".to_owned(), "1".to_owned())].into();
    let request = admin::PartitionServiceUpdateRequest {
        id: "lab".into(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        labels: Some(api::UpdateLabels {
            strategy: Some(api::update_labels::Strategy::Replace(api::Labels {
                labels,
            })),
        }),
        ..Default::default()
    };
    partitions.update(request).await.unwrap();
    let mut request = registration(UUID);
    nics(&mut request, 1);
    hammer.register(request).await.unwrap();
    // The port goes by the name that the switch has for it, and keeps what it was told as.
    let mut machines = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let get = admin::MachineServiceGetRequest { uuid: UUID.into() };
    let shown = machines.get(get).await.unwrap().into_inner().machine;
    let neighbour = &shown.unwrap().hardware.unwrap().nics[0].neighbors[0];
    let names = (neighbour.name.as_str(), neighbour.identifier.as_str());
    assert_eq!(names, ("Ethernet0", "Eth1/1"));
    node.stop().await;
}

/// Their clients repeat a call of which they did not get the answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_wrong_clock_that_is_told_twice_counts_once() {
    const DAY_S: i64 = 24 * 3600;
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, Some("lab")).await;
    let (_, token) = token_of(&node, &agent, UUID).await;
    let mut hammer = BootServiceClient::new(node.wire(Some(&token)));
    let now_s = i64::try_from(node.store.now().ms() / 1000).unwrap();
    let sent = |seconds| infra::BootServiceSendEventRequest {
        uuid: UUID.into(),
        event: Some(api::MachineProvisioningEvent {
            time: Some(prost_types::Timestamp { seconds, nanos: 0 }),
            ..event(api::MachineProvisioningEventType::Preparing)
        }),
    };
    let id = UUID.parse().unwrap();
    let is_crashing = || {
        let log = |t: &control_state::Tables| t.get::<EventLog>(&id).unwrap().crash_loop;
        node.store.read_local(log).unwrap()
    };
    for _ in 0..2 {
        hammer.send_event(sent(now_s + DAY_S)).await.unwrap();
    }
    assert!(!is_crashing());
    hammer.send_event(sent(now_s + DAY_S + 1)).await.unwrap();
    assert!(is_crashing(), "another one");
    node.stop().await;
}
