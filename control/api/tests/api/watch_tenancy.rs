//! Watches of what a tenant is kept, allowed and joined by.

use api::project_service_client::ProjectServiceClient;
use prost::Message;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::WatchChangeType::{Created, Deleted};
use tonic::Code;

use crate::node::Node;
use crate::watching::{brief, listed, news, of_project};

/// Bounds what a tenant may have.
async fn bound(node: &Node, login: &str) {
    let quota = mesh::Quota {
        subject: Some(mesh::quota::Subject::Tenant(login.to_owned())),
        limits: Some(mesh::Amounts {
            machines: Some(7),
            ..Default::default()
        }),
        ..Default::default()
    };
    let request = mesh::QuotaServiceSetRequest { quota: Some(quota) };
    mesh::quota_service_client::QuotaServiceClient::new(node.as_admin())
        .set(request)
        .await
        .unwrap();
}

/// Keeps a machine for a project.
async fn keep(node: &Node, project: &str) -> String {
    let kept = api::SizeReservation {
        name: "kept".into(),
        project: project.to_owned(),
        size: "small".into(),
        partitions: vec!["lab".to_owned()],
        amount: 1,
        ..Default::default()
    };
    let request = admin::SizeReservationServiceCreateRequest {
        size_reservation: Some(kept),
    };
    admin::size_reservation_service_client::SizeReservationServiceClient::new(node.as_admin())
        .create(request)
        .await
        .unwrap()
        .into_inner()
        .size_reservation
        .unwrap()
        .id
}

#[tokio::test(flavor = "multi_thread")]
async fn invites_quotas_and_reservations_are_told_to_those_whose_they_are() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, owner) = node.tenant("acme").await;
    let (rivals, foreign) = node.tenant("rival").await;
    let wanted = api::TokenServiceCreateRequest {
        project_roles: [(project.clone(), api::ProjectRole::Viewer.into())].into(),
        ..Default::default()
    };
    let (_, viewer) = node.token_of("acme", wanted).await;
    let kinds = ["project-invite", "quota", "size-reservation"];
    let mut own = of_project(node.wire(Some(&owner)), &project, &kinds)
        .await
        .unwrap();
    let mut theirs = of_project(node.wire(Some(&foreign)), &rivals, &kinds)
        .await
        .unwrap();
    assert!(listed(&mut own).await.0.is_empty());
    assert!(listed(&mut theirs).await.0.is_empty());
    // Those who may not list invites hear of none, and may not ask for them.
    let refused = of_project(node.wire(Some(&viewer)), &project, &kinds[..1]).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    let mut looking = of_project(node.wire(Some(&viewer)), &project, &[])
        .await
        .unwrap();
    listed(&mut looking).await;

    let mut projects = ProjectServiceClient::new(node.wire(Some(&owner)));
    let invite = api::ProjectServiceInviteRequest {
        project: project.clone(),
        role: api::ProjectRole::Viewer.into(),
    };
    let made = projects
        .invite(invite)
        .await
        .unwrap()
        .into_inner()
        .invite
        .unwrap();
    let event = news(&mut own).await;
    let [told] = event.changes.as_slice() else {
        panic!("{event:?}")
    };
    assert_eq!((told.r#type(), told.kind.as_str()), (Created, kinds[0]));
    let shown = api::ProjectInvite::decode(&*told.object.as_ref().unwrap().value).unwrap();
    let expected = api::ProjectInvite {
        secret: String::new(),
        ..made.clone()
    };
    assert_eq!(shown, expected);
    let invited = told.id.clone();

    bound(&node, "acme").await;
    let quota = "tenant/acme";
    assert_eq!(brief(&news(&mut own).await), [(Created, "quota", quota)]);
    assert_eq!(
        brief(&news(&mut looking).await),
        [(Created, "quota", quota)]
    );
    let kept = keep(&node, &project).await;
    let reserved = [(Created, "size-reservation", kept.as_str())];
    assert_eq!(brief(&news(&mut own).await), reserved);
    assert_eq!(brief(&news(&mut looking).await), reserved);

    let taken_back = api::ProjectServiceInviteDeleteRequest {
        project: project.clone(),
        secret: made.secret,
    };
    projects.invite_delete(taken_back).await.unwrap();
    let gone = [(Deleted, "project-invite", invited.as_str())];
    assert_eq!(brief(&news(&mut own).await), gone);

    // The rival heard nothing of all this: the first thing that it is told is its own.
    bound(&node, "rival").await;
    let first = [(Created, "quota", "tenant/rival")];
    assert_eq!(brief(&news(&mut theirs).await), first);
    node.stop().await;
}
