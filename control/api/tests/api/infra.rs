//! What agents of the published stack say, over gRPC.

use control_state::{Component, EventKind};
use infra::component_service_client::ComponentServiceClient;
use infra::event_service_client::EventServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use tonic::Code;

use crate::node::Node;

/// A token of an agent.
async fn agent(node: &Node) -> String {
    let wanted = api::TokenServiceCreateRequest {
        infra_role: Some(api::InfraRole::Editor.into()),
        ..Default::default()
    };
    node.token_of("metal-stack", wanted).await.1
}

pub(crate) fn ping(version: &str) -> infra::ComponentServicePingRequest {
    infra::ComponentServicePingRequest {
        r#type: api::ComponentType::MetalBmc.into(),
        identifier: "bmc-1".into(),
        started_at: Some(prost_types::Timestamp {
            seconds: 1_700_000_000,
            nanos: 0,
        }),
        interval: Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
        version: Some(api::Version {
            version: version.into(),
            ..Default::default()
        }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn components_report_themselves() {
    let node = Node::start().await;
    let (_, tenant) = node.tenant("acme").await;
    let token = agent(&node).await;
    let mut mine = ComponentServiceClient::new(node.wire(Some(&token)));
    let mut foreign = ComponentServiceClient::new(node.wire(Some(&tenant)));
    let refused = foreign.ping(ping("v1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    mine.ping(ping("v1")).await.unwrap();
    // Of the component: that its token was used is written down beside this.
    let written = || {
        let newest = node.store.read_local(|t| {
            let all = t.all::<Component>();
            all.map(|it| t.revision_of::<Component>(&it.id)).max()
        });
        newest.unwrap().unwrap()
    };
    let before = written();
    mine.ping(ping("v1")).await.unwrap();
    let after = written();
    assert_eq!(after, before, "a mere sign of life is not written");
    mine.ping(ping("v2")).await.unwrap();

    let mut all = admin::component_service_client::ComponentServiceClient::new(node.as_admin());
    let list = admin::ComponentServiceListRequest {
        query: Some(api::ComponentQuery {
            r#type: Some(api::ComponentType::MetalBmc.into()),
            ..Default::default()
        }),
    };
    let listed = all
        .list(list.clone())
        .await
        .unwrap()
        .into_inner()
        .components;
    assert_eq!(listed.len(), 1);
    let version = listed[0].version.as_ref().unwrap();
    assert_eq!(version.version, "v2");
    assert_eq!(listed[0].token.as_ref().unwrap().user, "metal-stack");
    let delete = admin::ComponentServiceDeleteRequest {
        uuid: listed[0].uuid.clone(),
    };
    all.delete(delete.clone()).await.unwrap();
    let gone = all.delete(delete).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert!(
        all.list(list)
            .await
            .unwrap()
            .into_inner()
            .components
            .is_empty()
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_taken_one_by_one() {
    let node = Node::start().await;
    node.data_centre().await;
    let machine = node.waiting_machine(1).await;
    let unknown = "00000000-0000-4000-8000-0000000000ff".to_owned();
    let token = agent(&node).await;
    let mut events = EventServiceClient::new(node.wire(Some(&token)));
    let event = |kind: api::MachineProvisioningEventType| api::MachineProvisioningEvent {
        event: kind.into(),
        message: "seen".into(),
        time: None,
    };
    let crashed = event(api::MachineProvisioningEventType::Crashed);
    let request = infra::EventServiceSendRequest {
        events: [
            (machine.clone(), crashed.clone()),
            (unknown.clone(), crashed),
        ]
        .into(),
    };
    let answer = events.send(request).await.unwrap().into_inner();
    assert_eq!((answer.events, answer.failed), (1, vec![unknown]));
    let id = machine.parse().unwrap();
    let last = node.store.read_local(|t| {
        let log = t.get::<control_state::EventLog>(&id);
        log.and_then(|log| log.events.last()).map(|it| it.kind)
    });
    assert_eq!(last.unwrap(), Some(EventKind::Crashed));

    // Nobody has it, so no installed system of anybody's can phone home from it.
    let home = event(api::MachineProvisioningEventType::PhonedHome);
    let request = infra::EventServiceSendRequest {
        events: [(machine.clone(), home)].into(),
    };
    let answer = events.send(request).await.unwrap().into_inner();
    assert_eq!((answer.events, answer.failed), (0, vec![machine]));
    node.stop().await;
}
