//! The published stack's switch agent against a node.

use control_state::{
    AgentKind, Cause, Certificate, CreateJoinTicket, IssueCertificate, JoinedBy, RedeemJoinTicket,
    RevokeIdentity,
};
use infra::bmc_service_client::BmcServiceClient;
use infra::boot_service_client::BootServiceClient;
use infra::switch_service_client::SwitchServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use proto_types::{Digest, JoinTicketId};
use tonic::Code;
use uuid::Uuid;

use crate::machines::wanted;
use crate::node::Node;
use crate::published_agents::agent;

#[expect(deprecated, reason = "published agents write this field")]
fn leaf(id: &str) -> api::Switch {
    let nic = |number: u8| api::SwitchNic {
        name: format!("Ethernet{number}"),
        identifier: format!("Eth1/{}", number + 1),
        mac: Some(format!("02:00:00:00:01:0{number}")),
        ..Default::default()
    };
    api::Switch {
        id: id.into(),
        partition: "lab".into(),
        rack: Some("rack-9".into()),
        management_ip: "10.9.1.1".into(),
        description: "the left one".into(),
        console_command: Some("tio /dev/ttyUSB0".into()),
        nics: (0..4).map(nic).collect(),
        os: Some(api::SwitchOs {
            vendor: api::SwitchOsVendor::Sonic.into(),
            version: "202311".into(),
            metal_core_version: "v0.18".into(),
        }),
        ..Default::default()
    }
}

pub(crate) async fn register_leaf(node: &Node, agent: &str, id: &str) -> api::Switch {
    let mut switches = SwitchServiceClient::new(node.wire(Some(agent)));
    let request = infra::SwitchServiceRegisterRequest {
        switch: Some(leaf(id)),
    };
    let made = switches.register(request).await.unwrap().into_inner();
    made.switch.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn switches_are_told_and_tell() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let made = register_leaf(&node, &agent, "leaf9").await;
    assert_eq!(made.console_command.as_deref(), Some("tio /dev/ttyUSB0"));
    assert_eq!(made.description, "the left one");
    let os = made.os.as_ref().unwrap();
    assert_eq!(
        (os.vendor(), os.version.as_str()),
        (api::SwitchOsVendor::Sonic, "202311")
    );
    let again = register_leaf(&node, &agent, "leaf9").await;
    assert_eq!(again.nics, made.nics);
    let mut switches = SwitchServiceClient::new(node.wire(Some(&agent)));
    let get = infra::SwitchServiceGetRequest { id: "leaf9".into() };
    switches.get(get.clone()).await.unwrap();
    let beat = |error: Option<&str>| infra::SwitchServiceHeartbeatRequest {
        id: "leaf9".into(),
        duration: Some(prost_types::Duration {
            seconds: 0,
            nanos: 250_000_000,
        }),
        error: error.map(str::to_owned),
        port_states: [("Ethernet0".to_owned(), api::SwitchPortStatus::Up.into())].into(),
        bgp_port_states: [(
            "Ethernet0".to_owned(),
            api::SwitchBgpPortState {
                peer_group: "FABRIC".into(),
                vrf_name: "default".into(),
                bgp_state: api::BgpState::Established.into(),
                ..Default::default()
            },
        )]
        .into(),
    };
    let answer = switches.heartbeat(beat(None)).await.unwrap().into_inner();
    assert!(answer.last_sync.is_some() && answer.last_sync_error.is_none());
    let before = node.store.read_local(|t| t.revision()).unwrap();
    switches.heartbeat(beat(None)).await.unwrap();
    let after = node.store.read_local(|t| t.revision()).unwrap();
    assert_eq!(after, before, "a mere sign of life is not written");
    let id = "leaf9".parse().unwrap();
    let seen = node.store.read_local(|t| {
        let switch = t.get::<control_state::Switch>(&id).unwrap();
        let wanted = control_state::life::port_vni(t, switch, "Ethernet1");
        let seen = |port: &str| switch.ports[port].observed.clone().unwrap();
        (seen("Ethernet0"), seen("Ethernet1").vni == wanted)
    });
    let (port, is_told) = seen.unwrap();
    assert!(port.oper_up && port.bgp.is_some() && is_told);
    let answer = switches.heartbeat(beat(Some("no route"))).await.unwrap();
    let error = answer.into_inner().last_sync_error.unwrap();
    assert_eq!(error.error.as_deref(), Some("no route"));

    let mut all = admin::switch_service_client::SwitchServiceClient::new(node.as_admin());
    let migrate = |to: &str| admin::SwitchServiceMigrateRequest {
        old_switch: "leaf9".into(),
        new_switch: to.into(),
    };
    let refused = all.migrate(migrate("leaf1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    register_leaf(&node, &agent, "leaf10").await;
    let moved = all.migrate(migrate("leaf10")).await.unwrap().into_inner();
    assert_eq!(moved.switch.unwrap().id, "leaf10");
    node.stop().await;
}

/// Has an agent of the mesh join the partition; its identity.
async fn join(node: &Node, kind: AgentKind, role: &str, name: &str) -> String {
    let now = node.store.now();
    let identity = format!("spiffe://test.example/partition/lab/{role}/{name}");
    let key = Digest::sha256([7; 32]);
    let (ticket, secret) = (JoinTicketId::new(Uuid::now_v7()), Digest::sha256([5; 32]));
    node.hardware(CreateJoinTicket {
        id: ticket,
        kind,
        partition: "lab".parse().unwrap(),
        agent: name.into(),
        secret: secret.clone(),
        key: None,
        tpm: None,
        reenrols: false,
        expires_at: now.plus_ms(60_000),
    })
    .await;
    node.hardware(RedeemJoinTicket {
        id: ticket,
        secret,
        key: key.clone(),
        tpm: None,
    })
    .await;
    let certificate = Certificate {
        serial: ticket.to_string(),
        identity: identity.clone(),
        issued_at: now,
        not_after: now.plus_ms(60_000),
        machine: None,
        allocation: None,
        key: Some(key),
        authority: 1,
        revoked_at: None,
        revoked_reason: String::new(),
    };
    node.hardware(IssueCertificate {
        certificate,
        cause: Cause::Join(JoinedBy::JoinTicket(ticket)),
    })
    .await;
    identity
}

/// An infra token is good for all switches of its partition, but not for one that has an agent of
/// the mesh: what that one reports is what machines are handed over by.
#[tokio::test(flavor = "multi_thread")]
async fn a_switch_of_a_core_agent_is_not_spoken_for_by_an_infra_token() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    register_leaf(&node, &agent, "leaf9").await;
    let identity = join(&node, AgentKind::Core, "core", "leaf9").await;

    let mut switches = SwitchServiceClient::new(node.wire(Some(&agent)));
    let get = infra::SwitchServiceGetRequest { id: "leaf9".into() };
    let beat = infra::SwitchServiceHeartbeatRequest {
        id: "leaf9".into(),
        ..Default::default()
    };
    let register = infra::SwitchServiceRegisterRequest {
        switch: Some(leaf("leaf9")),
    };
    for refused in [
        switches.get(get.clone()).await.map(drop),
        switches.heartbeat(beat.clone()).await.map(drop),
        switches.register(register).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(refused.message().contains("MM-1412"), "{refused}");
    }
    node.hardware(RevokeIdentity {
        identity,
        reason: "handed over".into(),
    })
    .await;
    switches.get(get).await.unwrap();
    switches.heartbeat(beat).await.unwrap();
    node.stop().await;
}

/// The same of the BMC agent, whose word ends orders, and of the boot server, which makes tokens of
/// machines.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_with_agents_of_the_mesh_is_not_served_by_an_infra_token() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    let machine = node.waiting_machine(1).await;
    let wire = || node.wire(Some(&agent));
    let report = || infra::UpdateBmcInfoRequest {
        partition: "lab".into(),
        bmc_reports: vec![],
    };
    let wait = || infra::WaitForBmcCommandRequest {
        partition: "lab".into(),
    };
    let token = || infra::BootServiceMachineTokenRequest {
        uuid: machine.clone(),
        user: "pixiecore".into(),
        ..Default::default()
    };
    let seen = || infra::BootServiceDhcpRequest {
        uuid: machine.clone(),
        partition: "lab".into(),
    };
    let mut bmcs = BmcServiceClient::new(wire());
    let mut boots = BootServiceClient::new(wire());
    bmcs.update_bmc_info(report()).await.unwrap();
    boots.dhcp(seen()).await.unwrap();
    join(&node, AgentKind::Bmc, "bmc", "bmc-1").await;
    for refused in [
        bmcs.update_bmc_info(report()).await.map(drop),
        bmcs.wait_for_bmc_command(wait()).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(refused.message().contains("MM-1412"), "{refused}");
    }
    boots.dhcp(seen()).await.unwrap();
    join(&node, AgentKind::Pixie, "pixie", "pixie-1").await;
    for refused in [
        boots.dhcp(seen()).await.map(drop),
        boots.machine_token(token()).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(refused.message().contains("MM-1412"), "{refused}");
    }
    node.stop().await;
}

/// Its agent does not tell whom it hears: two machines that claim one port are both held.
#[tokio::test(flavor = "multi_thread")]
async fn two_machines_that_claim_one_port_are_held_until_somebody_decides() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let honest = node.waiting_machine(1).await;
    let liar = node.waiting_machine_at(2, 1).await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let refused = machines.create(wanted(&project, &network)).await;
    assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let request = admin::MachineServiceIssuesRequest { query: None };
    let found = admins.issues(request).await.unwrap().into_inner().issues;
    for (machine, other) in [(&honest, &liar), (&liar, &honest)] {
        let of_machine = found.iter().find(|it| it.uuid == *machine).unwrap();
        let mut issues = of_machine.issues.iter();
        let is_disputed = |it: &&api::MachineIssue| it.reference_url.ends_with("#cable-disputed");
        let issue = issues.find(is_disputed).unwrap();
        assert!(issue.details.contains("leaf1 swp1"), "{}", issue.details);
        assert!(issue.details.contains(other.as_str()), "{}", issue.details);
        let request = admin::MachineServiceGetRequest {
            uuid: machine.clone(),
        };
        let shown = admins.get(request).await.unwrap().into_inner();
        let condition = shown.machine.unwrap().status.unwrap().condition.unwrap();
        assert!(condition.description.contains("disputed"), "{condition:?}");
    }
    let set = admin::MachineServiceSetStateRequest {
        uuid: liar.clone(),
        state: api::MachineState::Locked.into(),
        description: "it is not there".into(),
    };
    admins.set_state(set).await.unwrap();
    let made = machines.create(wanted(&project, &network)).await.unwrap();
    let made = made.into_inner().machine.unwrap();
    assert_eq!(made.uuid, honest);
    // Now that a tenant has it, a claim raises an issue and takes nothing.
    let late = node.waiting_machine_at(3, 1).await;
    let request = admin::MachineServiceIssuesRequest { query: None };
    let found = admins.issues(request).await.unwrap().into_inner().issues;
    let of_late = found.iter().find(|it| it.uuid == late).unwrap();
    let told = |it: &api::MachineIssue| it.details.contains("which is the port of machine");
    assert!(of_late.issues.iter().any(told), "{of_late:?}");
    let id = "leaf1".parse().unwrap();
    let at = node.store.read_local(|t| {
        let machine = control_state::query::port_machine(t, &id, "swp1");
        machine.unwrap().id.to_string()
    });
    assert_eq!(at.unwrap(), honest);
    node.stop().await;
}
