//! A machine that goes from one tenant to the next: what the first one left is not the second's to
//! see, and what hammer was given for the first is of no use any more.

use control_state::{
    BmcAction, EventKind, FreeMachine, Machine, ObservedPlace, PortObserved, ReportSwitch, Switch,
    Tables, life,
};
use infra::boot_service_client::BootServiceClient;
use prost::Message;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use tonic::Code;

use crate::node::{Node, wanted_machine};
use crate::published_agents::{UUID, agent, create, token_request, waiting};
use crate::watching::{listed, news, of_project};

type Machines = api::machine_service_client::MachineServiceClient<crate::node::Wire>;

/// Every switch does what it shall, and says so.
async fn switches_obey(node: &Node) {
    let reports = node.store.read_local(|tables: &Tables| {
        let report = |switch: &Switch| {
            let seen = |port: &String| PortObserved {
                admin_up: true,
                oper_up: true,
                place: ObservedPlace::default(),
                vni: life::port_vni(tables, switch, port),
                neighbours: vec![],
                bgp: None,
            };
            let ports = switch.ports.keys();
            ReportSwitch {
                id: switch.id.clone(),
                applied_term: u64::MAX,
                applied_generation: tables.revision(),
                duration_ms: 1,
                error: None,
                ports: ports.map(|port| (port.clone(), seen(port))).collect(),
                health: None,
            }
        };
        let switches = tables.all::<Switch>();
        switches.map(|switch| report(switch)).collect::<Vec<_>>()
    });
    for report in reports.unwrap() {
        node.hardware(report).await;
    }
}

/// The machine's project frees it, and it comes as far as to boot from the network.
async fn free(node: &Node, uuid: &str) {
    let id = uuid.parse().unwrap();
    let holder = |tables: &Tables| {
        let machine = tables.get::<Machine>(&id);
        machine.and_then(|machine| machine.allocation.as_ref().map(|it| it.project))
    };
    let project = node.store.read_local(holder).unwrap();
    node.hardware(FreeMachine { id, project }).await;
    node.bmc_obeys(BmcAction::PowerOff).await;
    switches_obey(node).await;
    node.bmc_obeys(BmcAction::BootPxe).await;
    node.bmc_obeys(BmcAction::PowerOn).await;
}

async fn told(node: &Node, uuid: &str, kind: EventKind, message: &str) {
    let time = node.store.now();
    let id = uuid.parse().unwrap();
    let message = message.to_owned();
    node.hardware(control_state::MachineEvent {
        id,
        kind,
        message,
        time,
    })
    .await;
}

fn texts(machine: &api::Machine) -> String {
    format!(
        "{:?} {:?}",
        machine.recent_provisioning_events, machine.status
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_tenant_sees_nothing_of_the_one_before() {
    let node = Node::start().await;
    node.data_centre().await;
    let (first, owner) = node.tenant("acme").await;
    let first_net = node.network(&owner, &first).await;
    let (second, rival) = node.tenant("rival").await;
    let second_net = node.network(&rival, &second).await;
    let uuid = node.waiting_machine(1).await;
    let mut machines = Machines::new(node.wire(Some(&owner)));
    let wanted = wanted_machine(&first, &first_net, "web-1");
    machines.create(wanted).await.unwrap();
    told(&node, &uuid, EventKind::Installing, "acme's image").await;
    told(&node, &uuid, EventKind::Crashed, "acme's secret failed").await;
    free(&node, &uuid).await;
    assert_eq!(node.waiting_machine(1).await, uuid);

    let mut machines = Machines::new(node.wire(Some(&rival)));
    let wanted = wanted_machine(&second, &second_net, "web-2");
    let made = machines.create(wanted).await.unwrap().into_inner();
    let made = made.machine.unwrap();
    let fresh = made.recent_provisioning_events.as_ref().unwrap();
    assert_eq!(fresh.events, [], "nothing happened since the allocation");
    told(&node, &uuid, EventKind::Installing, "rival's image").await;
    let get = api::MachineServiceGetRequest {
        uuid: uuid.clone(),
        project: second.clone(),
    };
    let got = machines.get(get).await.unwrap().into_inner().machine;
    let list = api::MachineServiceListRequest {
        project: second.clone(),
        query: None,
    };
    let list = machines.list(list).await.unwrap().into_inner().machines;
    let watch = of_project(node.wire(Some(&rival)), &second, &["machine"]);
    let mut watch = watch.await.unwrap();
    let (watched, _) = listed(&mut watch).await;
    told(&node, &uuid, EventKind::PlannedReboot, "power reset").await;
    let news = news(&mut watch).await;
    let object = |change: &proto_public::metalmesh::admin::v1::WatchChange| {
        let any = change.object.as_ref().unwrap();
        api::Machine::decode(any.value.as_slice()).unwrap()
    };
    let mut shown = vec![got.unwrap(), object(&watched[0]), object(&news.changes[0])];
    shown.extend(list);
    for machine in shown {
        let text = texts(&machine);
        assert!(text.contains("rival's image"), "{text}");
        for foreign in ["acme", "freed by", "test"] {
            assert!(!text.contains(foreign), "{foreign}: {text}");
        }
    }

    // Administrators are told everything.
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let request = admin::MachineServiceGetRequest { uuid: uuid.clone() };
    let all = admins.get(request).await.unwrap().into_inner().machine;
    let text = texts(&all.unwrap());
    assert!(
        text.contains("acme's image") && text.contains("freed by test"),
        "{text}"
    );

    // Somebody else of the project frees it: the tenant is not told who that is.
    let id = uuid.parse().unwrap();
    let project = second.parse().ok();
    node.hardware(FreeMachine { id, project }).await;
    let get = api::MachineServiceGetRequest {
        uuid,
        project: second,
    };
    let going = machines.get(get).await.unwrap().into_inner().machine;
    let text = texts(&going.unwrap());
    assert!(text.contains("the machine was freed"), "{text}");
    assert!(!text.contains("freed by"), "{text}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machines_token_ends_with_the_boot_that_it_was_made_for() {
    let node = Node::start().await;
    node.data_centre().await;
    let (first, owner) = node.tenant("acme").await;
    let first_net = node.network(&owner, &first).await;
    let (second, rival) = node.tenant("rival").await;
    let second_net = node.network(&rival, &second).await;
    let agent = agent(&node, Some("lab")).await;
    let (_, old, stream) = waiting(&node, &agent).await;
    create(&node, &first, &owner, &first_net).await;

    // Whoever has hammer's token makes another one of it.
    let mut tokens = api::token_service_client::TokenServiceClient::new(node.wire(Some(&old)));
    let child = tokens.refresh(api::TokenServiceRefreshRequest {}).await;
    let child = child.map(|made| made.into_inner().secret).ok();
    let done = infra::BootServiceInstallationSucceededRequest {
        uuid: UUID.into(),
        console_password: "console".into(),
    };
    let mut hammer = BootServiceClient::new(node.wire(Some(&old)));
    hammer.installation_succeeded(done).await.unwrap();
    node.bmc_obeys(BmcAction::BootDisk).await;
    let goodbye = infra::BootServiceSendEventRequest {
        uuid: UUID.into(),
        event: Some(api::MachineProvisioningEvent {
            event: api::MachineProvisioningEventType::BootingNewKernel.into(),
            message: String::new(),
            time: None,
        }),
    };
    hammer.send_event(goodbye.clone()).await.unwrap();
    // The stream of the ended boot ends with it.
    let mut stream = stream;
    let ended = loop {
        match tokio::time::timeout(std::time::Duration::from_secs(20), stream.message()).await {
            Ok(Ok(Some(_))) => {}
            Ok(Err(status)) => break status.code(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended, Code::Unauthenticated);
    let refused = hammer.send_event(goodbye).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    // No token is made for a machine that a tenant runs.
    let mut boot = BootServiceClient::new(node.wire(Some(&agent)));
    let early = boot.machine_token(token_request(UUID)).await.unwrap_err();
    assert_eq!(early.code(), Code::FailedPrecondition, "{early}");

    free(&node, UUID).await;
    let (_, new, mut stream) = waiting(&node, &agent).await;
    create(&node, &second, &rival, &second_net).await;
    let order = stream.message().await.unwrap().unwrap().allocation.unwrap();
    assert_eq!(order.project, second);
    let wait = infra::BootServiceWaitRequest { uuid: UUID.into() };
    for stale in [Some(old), child].into_iter().flatten() {
        let mut stale = BootServiceClient::new(node.wire(Some(&stale)));
        let refused = stale.wait(wait.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    }
    // The next boot ends this one, without a release between them.
    let mut now = BootServiceClient::new(node.wire(Some(&new)));
    drop(now.wait(wait.clone()).await.unwrap());
    boot.machine_token(token_request(UUID)).await.unwrap();
    let refused = now.wait(wait).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    node.stop().await;
}
