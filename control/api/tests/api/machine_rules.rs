//! What may not be done to machines, and which requests for one are refused: the rules of the
//! published contract and of the reference server.

use control_state::{BmcAction, BmcReading, DEAD_AFTER_MS, EventKind, ReportBmc};
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::{Code, Status};

use crate::node::{Node, Wire, debian, wanted_machine};

type Machines = api::machine_service_client::MachineServiceClient<Wire>;
type Admins = admin::machine_service_client::MachineServiceClient<Wire>;

/// Public keys that are whole.
const KEYS: [&str; 2] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/",
];

async fn delete(node: &Node, uuid: &str) -> Result<(), Status> {
    let mut admins = Admins::new(node.as_admin());
    let uuid = uuid.to_owned();
    let request = admin::MachineServiceDeleteRequest { uuid };
    admins.delete(request).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_deletes_only_machines_that_give_no_sign_of_life() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let (first, second) = (node.waiting_machine(1).await, node.waiting_machine(2).await);
    let mut machines = Machines::new(node.wire(Some(&token)));
    let request = wanted_machine(&project, &network, "web-1");
    let made = machines.create(request).await.unwrap().into_inner();
    let uuid = made.machine.unwrap().uuid;
    let spare = if uuid == first { &second } else { &first };
    for living in [&uuid, spare] {
        let refused = delete(&node, living).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(refused.message().starts_with("MM-1217"), "{refused}");
    }
    let get = || api::MachineServiceGetRequest {
        uuid: uuid.clone(),
        project: project.clone(),
    };
    let shown = machines.get(get()).await.unwrap().into_inner().machine;
    assert_eq!(shown.unwrap().meta.unwrap().deletion_task_id, None);

    node.silence(DEAD_AFTER_MS).await;
    delete(&node, spare).await.unwrap();
    // A tenant may silence its machine: what counts is that its BMC sees it off.
    let silent = delete(&node, &uuid).await.unwrap_err();
    assert!(silent.message().starts_with("MM-1217"), "{silent}");
    assert!(silent.message().contains("not known to be off"), "{silent}");
    let off = BmcReading {
        machine: uuid.parse().ok(),
        address: "10.9.0.1:623".into(),
        power_state: "off".into(),
        ..BmcReading::default()
    };
    node.hardware(ReportBmc {
        partition: "lab".parse().unwrap(),
        readings: vec![off],
    })
    .await;
    let (deleted, ()) = tokio::join!(delete(&node, &uuid), node.bmc_obeys(BmcAction::PowerOff));
    deleted.unwrap();
    let gone = machines.get(get()).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_machine_is_left_alone() {
    use api::MachineBmcCommand as Bmc;
    use api::MachineState as State;
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let mut machines = Machines::new(node.wire(Some(&token)));
    let mut admins = Admins::new(node.as_admin());
    let request = wanted_machine(&project, &network, "web-1");
    machines.create(request).await.unwrap();
    let set = |state: State, description: &str| admin::MachineServiceSetStateRequest {
        uuid: uuid.clone(),
        state: state.into(),
        description: description.into(),
    };
    admins
        .set_state(set(State::Locked, "in repair"))
        .await
        .unwrap();
    let by_admin = |command: Bmc| admin::MachineServiceBmcCommandRequest {
        uuid: uuid.clone(),
        command: command.into(),
    };
    let by_owner = |command: Bmc| api::MachineServiceBmcCommandRequest {
        uuid: uuid.clone(),
        project: project.clone(),
        command: command.into(),
    };
    for command in [
        Bmc::On,
        Bmc::Off,
        Bmc::Reset,
        Bmc::Cycle,
        Bmc::BootToBios,
        Bmc::BootFromDisk,
        Bmc::BootFromPxe,
    ] {
        for refused in [
            admins.bmc_command(by_admin(command)).await.map(drop),
            machines.bmc_command(by_owner(command)).await.map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition, "{command:?}");
            assert!(refused.message().contains("in repair"), "{refused}");
        }
    }
    // A lamp helps to find it.
    let lamp = by_admin(Bmc::IdentifyLedOn);
    admins.bmc_command(lamp).await.unwrap();
    let lamp = by_owner(Bmc::IdentifyLedOff);
    machines.bmc_command(lamp).await.unwrap();

    for (state, description, code) in [
        (State::Tainted, "odd", Some(Code::FailedPrecondition)),
        (State::Locked, "again", Some(Code::FailedPrecondition)),
        (State::Available, "done", Some(Code::InvalidArgument)),
        (State::Available, "", None),
        (State::Tainted, "odd", None),
        (State::Tainted, "again", Some(Code::FailedPrecondition)),
        (State::Locked, "odder", None),
        (State::Available, "", None),
    ] {
        let answer = admins.set_state(set(state, description)).await;
        let refused = answer.err().map(|status| status.code());
        assert_eq!(refused, code, "{state:?} {description}");
    }
    admins.bmc_command(by_admin(Bmc::Reset)).await.unwrap();
    node.stop().await;
}

/// An image for firewalls, in the catalogue.
async fn firewall_image(node: &Node) {
    let mut images = admin::image_service_client::ImageServiceClient::new(node.as_admin());
    let image = api::Image {
        id: "firewall-3.0.1".into(),
        features: vec![api::ImageFeature::Firewall.into()],
        ..debian()
    };
    let request = admin::ImageServiceCreateRequest { image: Some(image) };
    images.create(request).await.unwrap();
}

type Change = fn(&mut api::MachineServiceCreateRequest);

/// What is wrong with a request, and the code that it gets.
const MISTAKES: [(&str, Change, Code); 15] = [
    (
        "firewall_spec",
        |it| it.firewall_spec = Some(api::FirewallSpec::default()),
        Code::InvalidArgument,
    ),
    (
        "allocation_type",
        |it| it.allocation_type = 0,
        Code::InvalidArgument,
    ),
    (
        "key",
        |it| it.ssh_public_keys = vec![KEYS[0].into(), "ssh-rsa AAAA me".into()],
        Code::InvalidArgument,
    ),
    (
        "image for firewalls",
        |it| it.image = "firewall-3".into(),
        Code::InvalidArgument,
    ),
    (
        "image for machines",
        |it| it.allocation_type = api::MachineAllocationType::Firewall.into(),
        Code::InvalidArgument,
    ),
    (
        "no version",
        |it| it.image = "debian".into(),
        Code::InvalidArgument,
    ),
    (
        "no image",
        |it| it.image = "debian-13".into(),
        Code::NotFound,
    ),
    (
        "no layout",
        |it| it.filesystem_layout = Some("none".into()),
        Code::NotFound,
    ),
    (
        "layout that none matches",
        |it| it.filesystem_layout = None,
        Code::InvalidArgument,
    ),
    (
        "no size",
        |it| it.size = Some("huge".into()),
        Code::NotFound,
    ),
    ("networks", |it| it.networks.clear(), Code::InvalidArgument),
    (
        "network twice",
        |it| it.networks.push(it.networks[0].clone()),
        Code::InvalidArgument,
    ),
    (
        "super network",
        |it| it.networks[0].network = "super".into(),
        Code::InvalidArgument,
    ),
    (
        "no network",
        |it| it.networks[0].network = "none".into(),
        Code::NotFound,
    ),
    (
        "no address",
        |it| it.networks[0].ips = vec!["10.128.0.77".into()],
        Code::NotFound,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_can_never_work_take_nothing() {
    let node = Node::start().await;
    node.data_centre().await;
    firewall_image(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut machines = Machines::new(node.wire(Some(&token)));
    for is_there in [false, true] {
        if is_there {
            node.waiting_machine(1).await;
        }
        for (what, change, code) in MISTAKES {
            // An address is looked for only in a machine's name.
            if what == "no address" && !is_there {
                continue;
            }
            let mut request = wanted_machine(&project, &network, "web-1");
            change(&mut request);
            let refused = machines.create(request).await.unwrap_err();
            assert_eq!(refused.code(), code, "{what}: {refused}");
        }
    }
    let mut ips = api::ip_service_client::IpServiceClient::new(node.wire(Some(&token)));
    let list = api::IpServiceListRequest {
        project: project.clone(),
        query: None,
    };
    assert!(ips.list(list).await.unwrap().into_inner().ips.is_empty());
    // The newest that is supported, where the version is not whole.
    let request = api::MachineServiceCreateRequest {
        image: "debian-12".into(),
        ssh_public_keys: vec![KEYS[0].into()],
        ..wanted_machine(&project, &network, "web-1")
    };
    let made = machines.create(request).await.unwrap().into_inner();
    let allocation = made.machine.unwrap().allocation.unwrap();
    assert_eq!(allocation.image.unwrap().id, "debian-12.0.20260101");
    assert_eq!(allocation.ssh_public_keys, [KEYS[0]]);
    let mut images = api::image_service_client::ImageServiceClient::new(node.as_admin());
    let latest = api::ImageServiceLatestRequest {
        os: "debian-12".into(),
        classification: Some(api::ImageClassification::Supported.into()),
    };
    let latest = images.latest(latest).await.unwrap().into_inner();
    assert_eq!(latest.image.unwrap().id, "debian-12.0.20260101");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_counts_its_changes_and_its_keys_change_until_they_are_written() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let mut machines = Machines::new(node.wire(Some(&token)));
    let request = api::MachineServiceCreateRequest {
        ssh_public_keys: vec![KEYS[0].into()],
        ..wanted_machine(&project, &network, "web-1")
    };
    machines.create(request).await.unwrap();
    let update = |description: Option<&str>, key: Option<&str>| api::MachineServiceUpdateRequest {
        uuid: uuid.clone(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        project: project.clone(),
        description: description.map(str::to_owned),
        labels: None,
        ssh_public_keys: key.into_iter().map(str::to_owned).collect(),
    };
    let mut changed = async |description: Option<&str>, key: Option<&str>| {
        let answer = machines.update(update(description, key)).await?;
        let machine = answer.into_inner().machine.unwrap();
        let meta = machine.allocation.unwrap().meta.unwrap();
        let is_later = meta.updated_at.unwrap().seconds >= meta.created_at.unwrap().seconds;
        assert!(is_later, "{meta:?}");
        Ok::<_, Status>(meta.generation)
    };
    let refused = changed(None, Some("no key")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert_eq!(changed(Some("sells"), None).await.unwrap(), 2);
    assert_eq!(
        changed(Some("sells"), Some(KEYS[0])).await.unwrap(),
        2,
        "nothing new"
    );
    assert_eq!(changed(None, Some(KEYS[1])).await.unwrap(), 3);
    node.event(uuid.parse().unwrap(), EventKind::Installing)
        .await;
    let refused = changed(Some("rents"), Some(KEYS[0])).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("authorized_keys"), "{refused}");
    assert_eq!(changed(Some("rents"), Some(KEYS[1])).await.unwrap(), 4);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_with_machines_stays() {
    let node = Node::start().await;
    node.data_centre().await;
    let uuid = node.waiting_machine(1).await;
    let mut sizes = admin::size_service_client::SizeServiceClient::new(node.as_admin());
    let delete = || admin::SizeServiceDeleteRequest { id: "small".into() };
    let refused = sizes.delete(delete()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains(&uuid), "{refused}");
    node.stop().await;
}
