//! Desired state of switches and boot servers, and what is worth a write.

use control_state::{AgentKind, SetSwitchPort};
use proto_link::Code;
use proto_mesh::sealed;
use proto_mesh::*;

use crate::fixture::*;

pub fn register() -> SwitchRegisterRequest {
    let port = |n: u32| SwitchPort {
        name: format!("swp{n}"),
        mac: String::new(),
    };
    SwitchRegisterRequest {
        ports: vec![port(1), port(2)],
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_follows_its_intent() {
    let control = Control::start().await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    let e = core
        .desired(SwitchDesiredRequest::default())
        .await
        .unwrap()
        .message()
        .await;
    assert_eq!(e.unwrap_err().code(), Code::NotFound, "not registered yet");
    core.register(register()).await.unwrap();
    let mut stream = core.desired(SwitchDesiredRequest::default()).await.unwrap();
    let first = next(&mut stream).await;
    assert!(first.term > 0 && first.generation > 0);
    let ports: Vec<_> = first
        .ports
        .iter()
        .map(|p| (p.name.as_str(), p.vni, p.admin_up))
        .collect();
    assert_eq!(ports, [("swp1", 4000, true), ("swp2", 4000, true)]);
    assert!(first.segments[0].provisioning);

    // Something else changes: nothing is sent for it.
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let seen = BootSeenRequest {
        machine_uuid: "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f".into(),
        mac: "52:54:00:00:00:01".into(),
        arch: 0,
        seen_ms: 0,
        to_disk: false,
        told_ms: 0,
        relay_switch: String::new(),
        relay_port: String::new(),
    };
    pixie.seen(seen).await.unwrap();
    let down = SetSwitchPort {
        id: "leaf1".parse().unwrap(),
        port: "swp2".into(),
        admin_up: false,
    };
    control.propose(down).await.unwrap();
    let second = next(&mut stream).await;
    assert!(second.generation > first.generation);
    assert_eq!(
        second.ports.iter().map(|p| p.admin_up).collect::<Vec<_>>(),
        [true, false]
    );
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn desired_state_is_signed_for_its_agent() {
    let control = Control::start().await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    core.register(register()).await.unwrap();
    let mut stream = core.desired(SwitchDesiredRequest::default()).await.unwrap();
    let (mut first, bytes) = stream.message_and_bytes().await.unwrap().unwrap();
    let roots = control.pki.roots();
    let own = |id: &str| {
        let domain = control.pki.trust_domain();
        format!("spiffe://{domain}/partition/p1/{id}")
            .parse()
            .unwrap()
    };
    let opened: SwitchDesired = sealed::open(&bytes, &own("core/leaf1"), &roots).unwrap();
    first.seal = None;
    assert_eq!(opened, first);
    let other = sealed::open::<SwitchDesired>(&bytes, &own("core/leaf2"), &roots);
    assert!(matches!(other, Err(sealed::SealError::Foreign { .. })));
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let mut boots = pixie.desired(BootDesiredRequest {}).await.unwrap();
    let (_, bytes) = boots.message_and_bytes().await.unwrap().unwrap();
    sealed::open::<BootDesired>(&bytes, &own("pixie/pixie1"), &roots).unwrap();
    let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let mut orders = bmc.desired(BmcDesiredRequest {}).await.unwrap();
    let (_, bytes) = orders.message_and_bytes().await.unwrap().unwrap();
    sealed::open::<BmcDesired>(&bytes, &own("bmc/bmc1"), &roots).unwrap();
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_without_news_is_not_written() {
    let control = Control::start().await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    core.register(register()).await.unwrap();
    let report = |vni: u32| {
        let port = PortState {
            name: "swp1".into(),
            oper_up: true,
            vni,
            ..Default::default()
        };
        SwitchReport {
            applied_term: 1,
            applied_generation: 5,
            ports: vec![port],
            ..Default::default()
        }
    };
    core.report(report(4000)).await.unwrap();
    // Audit records are written in their own time; let them settle by a linearizable read of both.
    let writes = || control.store.read_local(|t| t.revision()).unwrap();
    let switch = || {
        control.store.read_local(|t| {
            let id = "leaf1".parse().unwrap();
            t.get::<control_state::Switch>(&id).map(|s| s.sync.clone())
        })
    };
    let (before, synced) = (writes(), switch().unwrap());
    control.clock.advance(10_000);
    for _ in 0..20 {
        core.report(report(4000)).await.unwrap();
    }
    assert_eq!(switch().unwrap(), synced);
    core.report(report(7)).await.unwrap();
    assert_ne!(switch().unwrap(), synced);
    // One for the changed report, and at most the audit of the registration.
    assert!(writes() - before <= 2, "{} writes", writes() - before);
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_switch_says_of_itself_is_bounded_and_written_once() {
    let control = Control::start().await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    core.register(register()).await.unwrap();
    let long = "x".repeat(10_000);
    let problem = |number: usize| SwitchProblem {
        object: format!("port swp{number} {long}"),
        reason: long.clone(),
        attempts: 1,
    };
    let drift = |number: u64| SwitchDrift {
        object: long.clone(),
        noticed_ms: number,
        held: number == 0,
        ..Default::default()
    };
    let session = |number: u64| SwitchSession {
        neighbour: long.clone(),
        state: "Established".into(),
        prefixes_received: number,
        ..Default::default()
    };
    let report = |attempts: u32| {
        let mut problems: Vec<SwitchProblem> = (0..3).map(problem).collect();
        problems[0].attempts = attempts;
        SwitchReport {
            problems,
            problems_omitted: 5,
            drift: (0..3).map(drift).collect(),
            sessions: (0..3).map(session).collect(),
            draining: true,
            ..Default::default()
        }
    };
    core.report(report(1)).await.unwrap();
    let switch = || {
        control.store.read_local(|tables| {
            let id = "leaf1".parse().unwrap();
            tables
                .get::<control_state::Switch>(&id)
                .map(|s| s.health.clone())
        })
    };
    let health = switch().unwrap().unwrap();
    assert_eq!((health.problems.len(), health.problems_omitted), (3, 5));
    assert!(
        health
            .problems
            .iter()
            .all(|problem| problem.reason.len() <= 1024)
    );
    assert!(
        health
            .sessions
            .iter()
            .all(|session| session.neighbour.len() <= 256)
    );
    assert!(health.drift[0].is_held && !health.drift[1].is_held && health.is_draining);
    let before = control
        .store
        .read_local(|tables| tables.revision())
        .unwrap();
    for attempts in 2..20 {
        core.report(report(attempts)).await.unwrap();
    }
    let after = control
        .store
        .read_local(|tables| tables.revision())
        .unwrap();
    // At most the audit of the registration.
    assert!(after - before <= 1, "{} writes", after - before);

    let many = SwitchReport {
        problems: (0..100).map(|_| SwitchProblem::default()).collect(),
        drift: (0..100).map(|_| SwitchDrift::default()).collect(),
        sessions: (0..600).map(|_| SwitchSession::default()).collect(),
        ..Default::default()
    };
    core.report(many).await.unwrap();
    let health = switch().unwrap().unwrap();
    let listed = [
        health.problems.len(),
        health.drift.len(),
        health.sessions.len(),
    ];
    assert_eq!(listed, [64, 32, 512]);
    assert_eq!((health.problems_omitted, health.sessions_omitted), (36, 88));
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_bmcs_reach_the_bmc_agent_of_the_partition() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let elsewhere: BmcServiceClient = control.agent(AgentKind::Bmc, "p2", "bmc2").await;
    let mut stream = bmc.desired(BmcDesiredRequest {}).await.unwrap();
    assert!(next(&mut stream).await.candidates.is_empty());
    let lease = BmcLease {
        mac: "52:54:00:00:00:aa".into(),
        address: "10.90.0.101".into(),
        remaining_ms: 0,
    };
    pixie
        .report_leases(LeaseReport {
            leases: vec![lease],
        })
        .await
        .unwrap();
    assert_eq!(next(&mut stream).await.candidates[0].address, "10.90.0.101");
    let mut other = elsewhere.desired(BmcDesiredRequest {}).await.unwrap();
    assert!(next(&mut other).await.candidates.is_empty());
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_another_kind_is_refused() {
    let control = Control::start().await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    core.register(register()).await.unwrap();
    let mesh: proto_link::MeshClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let code = |e: LinkStatus| e.code();
    let denied = Code::PermissionDenied;
    let switch = SwitchServiceClient::from(mesh.clone());
    assert_eq!(switch.register(register()).await.map_err(code), Err(denied));
    let boot = BootServiceClient::from(mesh.clone());
    let seen = BootSeenRequest::default();
    assert_eq!(boot.seen(seen).await.map_err(code), Err(denied));
    let machine = MachineServiceClient::from(mesh.clone());
    let event = MachineEvent::default();
    assert_eq!(machine.event(event).await.map_err(code), Err(denied));
    let home = PhoneHomeServiceClient::from(mesh);
    let phone = PhoneHomeRequest::default();
    assert_eq!(home.phone_home(phone).await.map_err(code), Err(denied));
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_carry_the_time_that_is_left() {
    // Control's clock is ahead of the agent's: no message tells its time of day.
    for apart_ms in [55_000, 3_600_000] {
        let control = Control::start().await;
        let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
        let uuid = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
        let boot = seen_at_boot(uuid, "52:54:00:00:00:01");
        pixie.seen(boot).await.unwrap();
        let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
        control.clock.advance(apart_ms);
        let order = control_state::OrderBmc {
            user: None,
            machine: uuid.parse().unwrap(),
            project: None,
            action: control_state::BmcAction::PowerOn,
            description: String::new(),
        };
        control.propose(order).await.unwrap();
        let mut stream = bmc.desired(BmcDesiredRequest {}).await.unwrap();
        let is_there = |desired: &BmcDesired| !desired.orders.is_empty();
        let desired = wait_for(&mut stream, is_there).await;
        assert_eq!(desired.orders[0].remaining_ms, 60_000);
        // The machine was never bound to a claim, which agents can tell from a control without epochs.
        assert_eq!(desired.orders[0].epoch, 0);
        assert!(desired.orders[0].era > 0, "{desired:?}");
        control.clock.advance(20_000);
        let mut later = bmc.desired(BmcDesiredRequest {}).await.unwrap();
        let desired = wait_for(&mut later, is_there).await;
        assert_eq!(desired.orders[0].remaining_ms, 40_000);
        control.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_name_the_bmc_that_control_believes() {
    let control = Control::start().await;
    let uuid = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
    let first: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
    let second: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc2").await;
    let report = |address: &str| BmcReport {
        bmcs: vec![BmcStatus {
            machine_uuid: uuid.into(),
            address: address.into(),
            power_state: "on".into(),
            ..Default::default()
        }],
    };
    first.report(report("10.0.0.1:623")).await.unwrap();
    let order = control_state::OrderBmc {
        user: None,
        machine: uuid.parse().unwrap(),
        project: None,
        action: control_state::BmcAction::PowerOn,
        description: String::new(),
    };
    control.propose(order).await.unwrap();
    let mut orders = first.desired(BmcDesiredRequest {}).await.unwrap();
    let desired = wait_for(&mut orders, |desired| !desired.orders.is_empty()).await;
    assert_eq!(desired.orders[0].bmc_address, "10.0.0.1");
    // The agent of another rack reads a BMC that tells the same UUID: both are held.
    second.report(report("10.0.0.2:623")).await.unwrap();
    wait_for(&mut orders, |desired| desired.orders.is_empty()).await;
    let confirm = control_state::ConfirmBmc {
        machine: uuid.parse().unwrap(),
        address: "10.0.0.2".into(),
    };
    control.propose(confirm).await.unwrap();
    let desired = wait_for(&mut orders, |desired| !desired.orders.is_empty()).await;
    assert_eq!(desired.orders[0].bmc_address, "10.0.0.2");
    control.stop().await;
}
