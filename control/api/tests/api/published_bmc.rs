//! The published stack's BMC agent against a node: what it reports, and who reads it.

use control_state::{BmcReading, Machine, ReportBmc};
use infra::bmc_service_client::BmcServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::bmc_claim_service_client::BmcClaimServiceClient;
use tonic::Code;

use crate::node::Node;
use crate::published_agents::{OTHER, PASSWORD, UUID, agent, commands, create, waiting};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_how_a_bmc_lets_in_but_its_agent() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, owner) = node.tenant("acme").await;
    let network = node.network(&owner, &project).await;
    let (rival, foreign) = node.tenant("rival").await;
    let agent = agent(&node, None).await;
    let (_, _, _stream) = waiting(&node, &agent).await;
    create(&node, &project, &owner, &network).await;
    let request = |project: &str| api::MachineServiceGetBmcRequest {
        uuid: UUID.into(),
        project: project.into(),
    };
    use api::machine_service_client::MachineServiceClient;
    let mut theirs = MachineServiceClient::new(node.wire(Some(&foreign)));
    for project in [&rival, &project] {
        let refused = theirs.get_bmc(request(project)).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
    }
    let mut own = MachineServiceClient::new(node.wire(Some(&owner)));
    let shown = own.get_bmc(request(&project)).await.unwrap().into_inner();
    let mut all = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let listed = all.list_bmc(admin::MachineServiceListBmcRequest::default());
    let listed = listed.await.unwrap().into_inner();
    let mut audit = admin::audit_service_client::AuditServiceClient::new(node.as_admin());
    let audit = audit.list(admin::AuditServiceListRequest::default());
    let audit = audit.await.unwrap().into_inner();
    for text in [
        format!("{shown:?}"),
        format!("{listed:?}"),
        format!("{audit:?}"),
    ] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    assert!(format!("{shown:?}").contains("10.9.0.1:623"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bmcs_are_reported() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let known = node.waiting_machine(1).await;
    let report = |uuid: &str, power: &str| api::MachineBmcReport {
        uuid: uuid.into(),
        bmc: Some(api::MachineBmc {
            address: "10.9.0.1:623".into(),
            mac: "02:00:00:00:09:01".into(),
            user: "metal".into(),
            password: PASSWORD.into(),
            power_state: power.into(),
            ..Default::default()
        }),
        led_state: Some(api::MachineChassisIdentifyLedState {
            value: "LED-OFF".into(),
            ..Default::default()
        }),
        power_metric: Some(drawn(230.5)),
        power_supplies: vec![supply("OK")],
        ..Default::default()
    };
    let request = |power| infra::UpdateBmcInfoRequest {
        partition: "lab".into(),
        bmc_reports: vec![report(&known, power), report(OTHER, power)],
    };
    let mut bmc = BmcServiceClient::new(node.wire(Some(&agent)));
    let answer = bmc.update_bmc_info(request("ON")).await.unwrap();
    let answer = answer.into_inner();
    assert_eq!(answer.updated_machines, std::slice::from_ref(&known));
    assert_eq!(answer.created_machines, [OTHER]);
    let before = node.store.read_local(|t| t.revision()).unwrap();
    bmc.update_bmc_info(request("ON")).await.unwrap();
    let id = known.parse().unwrap();
    let (after, machine) = node
        .store
        .read_local(|t| (t.revision(), t.get::<Machine>(&id).cloned()))
        .unwrap();
    let audited = 2;
    assert!(after <= before + audited, "what is known is not written");
    let machine = machine.unwrap();
    assert_eq!(machine.bmc.as_ref().unwrap().power_state, "on");
    assert_eq!(machine.led.value, "off");
    // Clients compare what they are shown with these.
    let shown = power(&node, &known).await;
    assert_eq!(shown.bmc.unwrap().power_state, "ON");
    assert_eq!(shown.led_state.unwrap().value, "LED-OFF");
    let mut machines = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let get = admin::MachineServiceGetRequest {
        uuid: known.clone(),
    };
    let status = machines.get(get).await.unwrap().into_inner().machine;
    let led = status.unwrap().status.unwrap().led_state.unwrap();
    assert_eq!(led.value, "LED-OFF");
    for (user, is_found) in [("metal", true), ("root", false)] {
        let found = with_bmc_user(&node, user).await;
        assert_eq!(found.contains(&known), is_found, "{user}");
    }
    node.stop().await;
}

/// Machines whose BMC is logged in to as this user, by UUID.
async fn with_bmc_user(node: &Node, user: &str) -> Vec<String> {
    let query = api::MachineQuery {
        bmc: Some(api::MachineBmcQuery {
            user: Some(user.into()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut machines = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let request = admin::MachineServiceListBmcRequest { query: Some(query) };
    let listed = machines.list_bmc(request).await.unwrap().into_inner();
    let found = listed.bmc_details.into_iter();
    found.map(|details| details.uuid).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_is_found_by_the_user_of_our_agent() {
    let node = Node::start().await;
    node.data_centre().await;
    let uuid = node.waiting_machine(1).await;
    let reading = BmcReading {
        machine: uuid.parse().ok(),
        address: "10.9.0.1:623".into(),
        user: "operator".into(),
        ..BmcReading::default()
    };
    node.hardware(ReportBmc {
        partition: "lab".parse().unwrap(),
        readings: vec![reading],
    })
    .await;
    assert_eq!(with_bmc_user(&node, "operator").await, [uuid]);
    for other in ["root", ""] {
        assert_eq!(with_bmc_user(&node, other).await, [""; 0], "{other:?}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_bmc_with_the_same_uuid_waits_for_an_administrator() {
    const TRUE: &str = "10.9.0.1:623";
    const ROGUE: &str = "10.9.0.66:623";
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let known = node.waiting_machine(1).await;
    let mut bmc = BmcServiceClient::new(node.wire(Some(&agent)));
    for address in [TRUE, ROGUE] {
        let reading = api::MachineBmcReport {
            uuid: known.clone(),
            bmc: Some(api::MachineBmc {
                address: address.into(),
                mac: "02:00:00:00:09:01".into(),
                power_state: "ON".into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let request = infra::UpdateBmcInfoRequest {
            partition: "lab".into(),
            bmc_reports: vec![reading],
        };
        bmc.update_bmc_info(request).await.unwrap();
    }
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let led_on = || admin::MachineServiceBmcCommandRequest {
        uuid: known.clone(),
        command: api::MachineBmcCommand::IdentifyLedOn.into(),
    };
    let held = admins.bmc_command(led_on()).await.unwrap_err();
    assert_eq!(held.code(), Code::FailedPrecondition, "{held}");
    assert!(held.message().contains(ROGUE), "{held}");

    let confirm = mesh::BmcClaimServiceConfirmRequest {
        machine: known.to_uppercase(),
        address: "10.9.0.1".into(),
    };
    let viewer = api::TokenServiceCreateRequest {
        admin_role: Some(api::AdminRole::Viewer.into()),
        ..Default::default()
    };
    let viewer = node.token_of("viewer", viewer).await.1;
    let mut viewers = BmcClaimServiceClient::new(node.wire(Some(&viewer)));
    let refused = viewers.confirm(confirm.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let mut claims = BmcClaimServiceClient::new(node.as_admin());
    let unknown = mesh::BmcClaimServiceConfirmRequest {
        address: "10.9.0.99".into(),
        ..confirm.clone()
    };
    let refused = claims.confirm(unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let confirmed = claims.confirm(confirm).await.unwrap().into_inner();
    assert_eq!(
        (confirmed.machine, confirmed.address.as_str()),
        (known.clone(), TRUE)
    );
    admins.bmc_command(led_on()).await.unwrap();
    node.stop().await;
}

fn drawn(watts: f32) -> api::MachinePowerMetric {
    api::MachinePowerMetric {
        average_consumed_watts: watts,
        interval_in_min: 20.0,
        max_consumed_watts: 305.25,
        min_consumed_watts: 198.0,
    }
}

fn supply(health: &str) -> api::MachinePowerSupply {
    api::MachinePowerSupply {
        health: health.into(),
        state: "Enabled".into(),
    }
}

/// What an admin sees of the machine's power.
async fn power(node: &Node, machine: &str) -> api::MachineBmcReport {
    let mut machines = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let uuid = machine.to_owned();
    let shown = machines.get_bmc(admin::MachineServiceGetBmcRequest { uuid });
    let shown = shown.await.unwrap().into_inner();
    shown.bmc_details.unwrap().bmc_report.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_machines_draw_is_shown_and_written_only_when_a_supply_changes() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let known = node.waiting_machine(1).await;
    let mut bmc = BmcServiceClient::new(node.wire(Some(&agent)));
    let mut tell = async |watts, health: &str| {
        let report = api::MachineBmcReport {
            uuid: known.clone(),
            bmc: Some(api::MachineBmc {
                address: "10.9.0.1:623".into(),
                mac: "02:00:00:00:09:01".into(),
                ..Default::default()
            }),
            power_metric: Some(drawn(watts)),
            power_supplies: vec![supply(health), supply("OK")],
            ..Default::default()
        };
        let request = infra::UpdateBmcInfoRequest {
            partition: "lab".into(),
            bmc_reports: vec![report],
        };
        bmc.update_bmc_info(request).await.unwrap();
        power(&node, &known).await
    };
    let shown = tell(230.5, "OK").await;
    assert_eq!(shown.power_metric, Some(drawn(230.5)));
    assert_eq!(shown.power_supplies, [supply("OK"), supply("OK")]);
    let shown = tell(240.0, "OK").await;
    assert_eq!(
        shown.power_metric,
        Some(drawn(230.5)),
        "of the first report"
    );
    let shown = tell(250.0, "Critical").await;
    assert_eq!(shown.power_metric, Some(drawn(250.0)));
    assert_eq!(shown.power_supplies, [supply("Critical"), supply("OK")]);
    let shown = tell(f32::NAN, "OK").await;
    assert_eq!(shown.power_metric, Some(drawn(0.0)));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_goes_to_one_of_two_streams_and_is_pending_until_it_is_taken() {
    use admin::TaskState;
    use api::MachineBmcCommand as Bmc;
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let uuid = node.waiting_machine(1).await;
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let mut order = async |command: Bmc| {
        let uuid = uuid.clone();
        let command = command.into();
        let request = admin::MachineServiceBmcCommandRequest { uuid, command };
        let ordered = admins.bmc_command(request).await.unwrap();
        ordered.into_inner().task_id
    };
    let state = async |task_id: &str| {
        let mut tasks = admin::task_service_client::TaskServiceClient::new(node.as_admin());
        let request = admin::TaskServiceGetRequest {
            task_id: task_id.to_owned(),
            queue: "default".into(),
        };
        let task = tasks.get(request).await.unwrap().into_inner().task;
        task.unwrap().state()
    };
    let done = async |command_id: &str| {
        let mut bmc = BmcServiceClient::new(node.wire(Some(&agent)));
        let request = infra::BmcCommandDoneRequest {
            command_id: command_id.to_owned(),
            error: None,
        };
        bmc.bmc_command_done(request).await.unwrap();
    };
    let first = order(Bmc::Cycle).await;
    assert_eq!(state(&first).await, TaskState::Pending);
    let mut older = commands(&node, &agent).await;
    assert_eq!(older.message().await.unwrap().unwrap().command_id, first);
    assert_eq!(state(&first).await, TaskState::Active);
    let mut newer = commands(&node, &agent).await;
    let second = order(Bmc::IdentifyLedOn).await;
    // The orders of one machine have a sequence: the second one waits for the first.
    done(&first).await;
    assert_eq!(newer.message().await.unwrap().unwrap().command_id, second);
    done(&second).await;
    assert_eq!(state(&second).await, TaskState::Completed);
    let third = order(Bmc::Cycle).await;
    assert_eq!(newer.message().await.unwrap().unwrap().command_id, third);
    // It leaves without a word: what it took, and what comes, is the other one's.
    drop(newer);
    let fourth = order(Bmc::IdentifyLedOff).await;
    for expected in [&third, &fourth] {
        let told = older.message().await.unwrap().unwrap();
        assert_eq!(told.command_id, *expected, "and none that another one had");
    }
    node.stop().await;
}
