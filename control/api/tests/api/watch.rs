//! Watches: ordered, once, resumable, and never more than a caller may see.

use control_state::BmcAction;
use control_watch::WatchLimits;
use prost::Message;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1::watch_service_client::WatchServiceClient;
use proto_public::metalmesh::admin::v1::{
    WatchChangeType, WatchServiceAllRequest, WatchServiceOwnRequest, WatchServiceTenantRequest,
};
use tonic::{Code, Status};

use crate::node::Node;
use crate::watching::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_then_each_change_once_and_again_from_any_revision() {
    let node = Node::start().await;
    partition(&node, "old").await;
    let mut live = all(node.as_admin(), &["partition", "switch"], 0)
        .await
        .unwrap();
    let (there, revision) = listed(&mut live).await;
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].r#type(), WatchChangeType::Present);
    assert_eq!(
        (there[0].kind.as_str(), there[0].id.as_str()),
        ("partition", "old")
    );
    assert!(there[0].revision > 0 && there[0].revision <= revision);

    node.data_centre().await;
    for number in 0..5 {
        partition(&node, &format!("p{number}")).await;
    }
    let delete = admin::PartitionServiceDeleteRequest { id: "p3".into() };
    admin::partition_service_client::PartitionServiceClient::new(node.as_admin())
        .delete(delete)
        .await
        .unwrap();
    // lab, leaf1, p0 to p4, and p3 again.
    let mut seen = Vec::new();
    while seen.len() < 8 {
        seen.push(news(&mut live).await);
    }
    assert!(seen.is_sorted_by(|a, b| a.revision < b.revision));
    assert!(seen.iter().all(|it| it.changes.len() == 1));
    assert_eq!(
        brief(&seen[0]),
        [(WatchChangeType::Created, "partition", "lab")]
    );
    assert_eq!(
        brief(&seen[1]),
        [(WatchChangeType::Created, "switch", "leaf1")]
    );
    assert_eq!(
        brief(&seen[7]),
        [(WatchChangeType::Deleted, "partition", "p3")]
    );
    let gone = seen[7].changes[0].object.as_ref().unwrap();
    assert_eq!(
        gone.type_url,
        "type.googleapis.com/metalstack.api.v2.Partition"
    );
    assert_eq!(api::Partition::decode(&gone.value[..]).unwrap().id, "p3");

    for (at, event) in seen.iter().enumerate() {
        let mut resumed = all(node.as_admin(), &["partition", "switch"], event.revision)
            .await
            .unwrap();
        for expected in &seen[at + 1..] {
            assert_eq!(news(&mut resumed).await, *expected);
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_sees_its_own_and_hears_when_it_goes() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let (rivals, foreign) = node.tenant("rival").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let mine = ["ip", "machine"];
    let mut own = of_project(node.wire(Some(&token)), &project, &mine)
        .await
        .unwrap();
    assert!(listed(&mut own).await.0.is_empty());
    let mut theirs = of_project(node.wire(Some(&foreign)), &rivals, &[])
        .await
        .unwrap();
    let (there, _) = listed(&mut theirs).await;
    assert!(
        there
            .iter()
            .all(|it| it.id != network && it.kind != "machine"),
        "{there:?}"
    );
    let spying = of_project(node.wire(Some(&foreign)), &project, &mine).await;
    assert_eq!(spying.unwrap_err().code(), Code::NotFound);
    let everything = all(node.wire(Some(&token)), &[], 0).await;
    assert_eq!(everything.unwrap_err().code(), Code::PermissionDenied);

    let wanted = api::MachineServiceCreateRequest {
        project: project.clone(),
        name: "web-1".into(),
        uuid: None,
        partition: Some("lab".into()),
        size: Some("small".into()),
        image: "debian-12.0".into(),
        filesystem_layout: Some("default".into()),
        networks: vec![api::MachineAllocationNetwork {
            network,
            ips: Vec::new(),
        }],
        allocation_type: api::MachineAllocationType::Machine.into(),
        ..Default::default()
    };
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    machines.create(wanted).await.unwrap();
    // One command gave the machine and its address: one message has both.
    let event = news(&mut own).await;
    assert_eq!(
        brief(&event),
        [
            (WatchChangeType::Created, "ip", "10.128.0.1"),
            (WatchChangeType::Created, "machine", uuid.as_str()),
        ]
    );
    let delete = api::MachineServiceDeleteRequest {
        uuid: uuid.clone(),
        project: project.clone(),
    };
    let (deleted, ()) = tokio::join!(machines.delete(delete), node.bmc_obeys(BmcAction::PowerOff));
    deleted.unwrap();
    let mut gone = false;
    while !gone {
        let event = news(&mut own).await;
        let changes = brief(&event);
        gone = changes.contains(&(WatchChangeType::Deleted, "machine", uuid.as_str()));
    }
    // The rival heard nothing of all this: the next thing that it is told is its own.
    let mine = node.network(&foreign, &rivals).await;
    let event = news(&mut theirs).await;
    assert_eq!(
        brief(&event),
        [(WatchChangeType::Created, "network", mine.as_str())]
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_rights_end_the_stream_at_once() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let inner = api::TokenServiceCreateRequest {
        project_roles: [(project.clone(), api::ProjectRole::Viewer.into())].into(),
        tenant_roles: [("acme".to_owned(), api::TenantRole::Owner.into())].into(),
        permissions: vec![itself(&["/metalstack.api.v2.TokenService/Update"])],
        ..Default::default()
    };
    let (id, secret) = node.token_of("acme", inner.clone()).await;
    let mut watch = of_project(node.wire(Some(&secret)), &project, &[])
        .await
        .unwrap();
    listed(&mut watch).await;
    let revoke = admin::TokenServiceRevokeRequest {
        uuid: id,
        user: "acme".into(),
    };
    admin::token_service_client::TokenServiceClient::new(node.as_admin())
        .revoke(revoke)
        .await
        .unwrap();
    let status = end(&mut watch).await;
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(status.message().starts_with("MM-1103"), "{status}");

    // A role that goes: rival is a viewer of acme's project, and then is not.
    node.tenant("rival").await;
    let mut projects = api::project_service_client::ProjectServiceClient::new(node.as_admin());
    let roles = [api::ProjectRole::Owner, api::ProjectRole::Viewer];
    for (member, role) in ["acme", "rival"].into_iter().zip(roles) {
        let add = api::ProjectServiceAddMemberRequest {
            project: project.clone(),
            member: member.into(),
            role: role.into(),
        };
        projects.add_member(add).await.unwrap();
    }
    let token = node
        .token("rival", &project, api::ProjectRole::Viewer)
        .await;
    let mut watch = of_project(node.wire(Some(&token)), &project, &["project"])
        .await
        .unwrap();
    assert_eq!(listed(&mut watch).await.0.len(), 1);
    let remove = api::ProjectServiceRemoveMemberRequest {
        project: project.clone(),
        member: "rival".into(),
    };
    projects.remove_member(remove).await.unwrap();
    // Not even the change of the project that it watches is told any more.
    assert_eq!(next(&mut watch).await.unwrap_err().code(), Code::NotFound);

    // More or other rights are no reason to show less; they show other things, so list again.
    let (id, secret) = node.token_of("acme", inner).await;
    let request = WatchServiceTenantRequest {
        login: "acme".into(),
        ..Default::default()
    };
    let mut watch = WatchServiceClient::new(node.wire(Some(&secret)))
        .tenant(request)
        .await
        .unwrap()
        .into_inner();
    let (there, _) = listed(&mut watch).await;
    let mut names: Vec<&str> = there.iter().map(|it| it.kind.as_str()).collect();
    names.dedup();
    assert_eq!(names, ["audit", "project", "tenant"]);
    let update = api::TokenServiceUpdateRequest {
        uuid: id,
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        tenant_roles: [("acme".to_owned(), api::TenantRole::Viewer.into())].into(),
        ..Default::default()
    };
    api::token_service_client::TokenServiceClient::new(node.wire(Some(&secret)))
        .update(update)
        .await
        .expect("a token may give rights away");
    let status = end(&mut watch).await;
    assert!(status.message().starts_with("MM-1703"), "{status}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_ago_is_said_so() {
    let node = Node::start_with(WatchLimits::default(), 4).await;
    for number in 0..6 {
        partition(&node, &format!("p{number}")).await;
    }
    let compacted = |status: Status| {
        assert_eq!(status.code(), Code::Aborted);
        assert!(status.message().starts_with("MM-1701"), "{status}");
        assert!(status.message().contains("list again"), "{status}");
    };
    compacted(all(node.as_admin(), &["partition"], 1).await.unwrap_err());
    // A revision of another cluster, or from after the backup that was restored.
    compacted(
        all(node.as_admin(), &["partition"], 1 << 40)
            .await
            .unwrap_err(),
    );
    let unknown = all(node.as_admin(), &["ca"], 0).await.unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_everybodys_and_one_object_alone() {
    let node = Node::start().await;
    node.data_centre().await;
    let own = WatchServiceOwnRequest {
        kinds: kinds(&["image", "token"]),
        ..Default::default()
    };
    let permission = itself(&[
        "/metalmesh.admin.v1.WatchService/Own",
        "/metalstack.api.v2.ImageService/List",
    ]);
    node.tenant("acme").await;
    let inner = api::TokenServiceCreateRequest {
        permissions: vec![permission],
        ..Default::default()
    };
    let (_, secret) = node.token_of("acme", inner).await;
    let mut watches = WatchServiceClient::new(node.wire(Some(&secret)));
    // It may watch, and read images, but not tokens.
    let refused = watches.own(own).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let mut watch = watches
        .own(WatchServiceOwnRequest::default())
        .await
        .unwrap()
        .into_inner();
    let (there, _) = listed(&mut watch).await;
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].kind, "image");

    let request = WatchServiceAllRequest {
        kinds: kinds(&["partition"]),
        id: "p1".into(),
        from_revision: 0,
    };
    let mut one = WatchServiceClient::new(node.as_admin())
        .all(request)
        .await
        .unwrap()
        .into_inner();
    assert!(listed(&mut one).await.0.is_empty());
    for id in ["p0", "p1", "p2"] {
        partition(&node, id).await;
    }
    let event = news(&mut one).await;
    assert_eq!(
        brief(&event),
        [(WatchChangeType::Created, "partition", "p1")]
    );
    node.stop().await;
}
