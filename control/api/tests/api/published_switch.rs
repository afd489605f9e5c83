//! The published stack's switch agent against a node.

use infra::switch_service_client::SwitchServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use tonic::Code;

use crate::node::Node;
use crate::published::agent;

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
