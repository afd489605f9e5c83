//! Machines: allocated once, seen by their project alone, given back.

use control_state::BmcAction;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::{Code, Request};

use crate::node::Node;

pub(crate) fn wanted(project: &str, network: &str) -> api::MachineServiceCreateRequest {
    let net = api::MachineAllocationNetwork {
        network: network.to_owned(),
        ips: Vec::new(),
    };
    api::MachineServiceCreateRequest {
        project: project.to_owned(),
        name: "web-1".into(),
        partition: Some("lab".into()),
        size: Some("small".into()),
        image: "debian-12.0".into(),
        filesystem_layout: Some("default".into()),
        networks: vec![net],
        allocation_type: api::MachineAllocationType::Machine.into(),
        // As a published client sends it when its user gave none.
        userdata: Some(String::new()),
        ..Default::default()
    }
}

fn with_key(
    request: api::MachineServiceCreateRequest,
    key: &str,
) -> Request<api::MachineServiceCreateRequest> {
    let mut request = Request::new(request);
    request
        .metadata_mut()
        .insert("idempotency-key", key.parse().unwrap());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn allocation_is_complete_and_repeatable() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    node.waiting_machine(2).await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let request = wanted(&project, &network);
    let first = machines
        .create(with_key(request.clone(), "key-1"))
        .await
        .unwrap();
    let first = first.into_inner().machine.unwrap();
    let again = machines
        .create(with_key(request.clone(), "key-1"))
        .await
        .unwrap();
    let again = again.into_inner().machine.unwrap();
    assert_eq!(first.uuid, again.uuid);
    let other = api::MachineServiceCreateRequest {
        name: "web-2".into(),
        ..request.clone()
    };
    let refused = machines
        .create(with_key(other.clone(), "key-1"))
        .await
        .unwrap_err();
    assert!(refused.message().starts_with("MM-1011"), "{refused}");
    machines.create(with_key(other, "key-2")).await.unwrap();
    let third = api::MachineServiceCreateRequest {
        name: "web-3".into(),
        ..request
    };
    let refused = machines.create(third).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);

    let allocation = first.allocation.unwrap();
    assert_eq!(allocation.project, project);
    assert_eq!(allocation.created_by, "acme");
    assert_eq!(allocation.image.unwrap().id, "debian-12.0.20260101");
    assert_eq!(allocation.networks.len(), 1);
    assert_eq!(allocation.networks[0].ips, ["10.128.0.1"]);
    assert!(allocation.networks[0].asn > 4_210_000_000);
    // What published clients look into without asking.
    let events = first.recent_provisioning_events.unwrap();
    assert!(events.last_error_event.is_some());
    assert!(events.events.iter().all(|event| event.event != 0));
    assert!(first.status.unwrap().condition.is_some() && first.meta.is_some());
    let request = api::MachineServiceGetRequest { uuid, project };
    machines.get(request).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_belongs_to_its_project_alone() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let (rivals, foreign) = node.tenant("rival").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let mut theirs =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&foreign)));
    // Free machines are nobody's: no tenant sees them.
    let get = |project: &String| api::MachineServiceGetRequest {
        uuid: uuid.clone(),
        project: project.clone(),
    };
    assert_eq!(
        machines.get(get(&project)).await.unwrap_err().code(),
        Code::NotFound
    );
    let by_id = api::MachineServiceCreateRequest {
        uuid: Some(uuid.clone()),
        partition: None,
        size: None,
        ..wanted(&project, &network)
    };
    let refused = machines.create(by_id).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    machines.create(wanted(&project, &network)).await.unwrap();
    machines.get(get(&project)).await.unwrap();
    for project in [&project, &rivals] {
        assert_eq!(
            theirs.get(get(project)).await.unwrap_err().code(),
            Code::NotFound
        );
        let request = api::MachineServiceDeleteRequest {
            uuid: uuid.clone(),
            project: project.clone(),
        };
        assert_eq!(
            theirs.delete(request).await.unwrap_err().code(),
            Code::NotFound
        );
        let request = api::MachineServiceGetBmcRequest {
            uuid: uuid.clone(),
            project: project.clone(),
        };
        assert_eq!(
            theirs.get_bmc(request).await.unwrap_err().code(),
            Code::NotFound
        );
    }
    let request = api::MachineServiceGetBmcRequest {
        uuid: uuid.clone(),
        project,
    };
    let bmc = machines
        .get_bmc(request)
        .await
        .unwrap()
        .into_inner()
        .bmc_details
        .unwrap();
    let bmc = bmc.bmc_report.unwrap().bmc.unwrap();
    assert!(bmc.user.is_empty() && bmc.password.is_empty());
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn freeing_answers_when_the_machine_has_left() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    machines.create(wanted(&project, &network)).await.unwrap();
    let request = api::MachineServiceDeleteRequest {
        uuid: uuid.clone(),
        project: project.clone(),
    };
    let mut second = machines.clone();
    let (freed, ()) = tokio::join!(
        second.delete(request.clone()),
        node.bmc_obeys(BmcAction::PowerOff)
    );
    let freed = freed.unwrap().into_inner().machine.unwrap();
    assert_eq!(freed.uuid, uuid);
    assert!(
        freed.allocation.is_some(),
        "as it was while the project had it"
    );
    assert!(freed.meta.unwrap().deletion_task_id.is_some());
    let request = api::MachineServiceGetRequest {
        uuid,
        project: project.clone(),
    };
    assert_eq!(
        machines.get(request).await.unwrap_err().code(),
        Code::NotFound
    );
    let mut ips = api::ip_service_client::IpServiceClient::new(node.wire(Some(&token)));
    let request = api::IpServiceListRequest {
        project,
        query: None,
    };
    assert!(ips.list(request).await.unwrap().into_inner().ips.is_empty());
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_locks_lists_and_finds_issues() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let set = admin::MachineServiceSetStateRequest {
        uuid: uuid.clone(),
        state: api::MachineState::Locked.into(),
        description: "in repair".into(),
    };
    let locked = admins
        .set_state(set)
        .await
        .unwrap()
        .into_inner()
        .machine
        .unwrap();
    let condition = locked.status.unwrap().condition.unwrap();
    assert_eq!(condition.description, "in repair");
    assert_eq!(condition.issuer, "admin");
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let refused = machines
        .create(wanted(&project, &network))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let query = api::MachineQuery {
        state: Some(api::MachineState::Locked.into()),
        partition: Some("lab".into()),
        not_allocated: Some(true),
        ..Default::default()
    };
    let request = admin::MachineServiceListRequest { query: Some(query) };
    assert_eq!(
        admins
            .list(request)
            .await
            .unwrap()
            .into_inner()
            .machines
            .len(),
        1
    );
    let request = admin::MachineServiceIssuesRequest { query: None };
    let issues = admins.issues(request).await.unwrap().into_inner().issues;
    let kinds: Vec<i32> = issues[0].issues.iter().map(|issue| issue.r#type).collect();
    assert!(
        kinds.contains(&(api::MachineIssueType::BmcWithoutIp as i32)),
        "{kinds:?}"
    );
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let request = admin::PartitionServiceCapacityRequest::default();
    let capacity = partitions
        .capacity(request)
        .await
        .unwrap()
        .into_inner()
        .partition_capacity;
    let sizes = &capacity[0].machine_size_capacities;
    assert_eq!(
        (sizes[0].total, sizes[0].free, sizes[0].unavailable),
        (1, 0, 1)
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_order_can_be_looked_up() {
    let node = Node::start().await;
    node.data_centre().await;
    let uuid = node.waiting_machine(1).await;
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let mut tasks = admin::task_service_client::TaskServiceClient::new(node.as_admin());
    let command = |command: api::MachineBmcCommand| admin::MachineServiceBmcCommandRequest {
        uuid: uuid.clone(),
        command: command.into(),
    };
    let order = admins
        .bmc_command(command(api::MachineBmcCommand::IdentifyLedOn))
        .await
        .unwrap();
    let task_id = order.into_inner().task_id;
    let get = admin::TaskServiceGetRequest {
        task_id,
        queue: "default".into(),
    };
    let task = tasks
        .get(get.clone())
        .await
        .unwrap()
        .into_inner()
        .task
        .unwrap();
    assert_eq!(task.state(), admin::TaskState::Pending);
    node.bmc_obeys(BmcAction::LedOn).await;
    let task = tasks.get(get).await.unwrap().into_inner().task.unwrap();
    assert_eq!(task.state(), admin::TaskState::Completed);
    assert!(String::from_utf8(task.payload).unwrap().contains(&uuid));
    let listed = tasks
        .list(admin::TaskServiceListRequest::default())
        .await
        .unwrap();
    assert_eq!(listed.into_inner().tasks.len(), 1);
    for own in [
        api::MachineBmcCommand::MachineCreated,
        api::MachineBmcCommand::MachineDeleted,
    ] {
        let refused = admins.bmc_command(command(own)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    node.stop().await;
}
