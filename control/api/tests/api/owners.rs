//! Tenants and projects keep an owner, and users their personal tenant.

use admin::tenant_service_client::TenantServiceClient as AdminTenantServiceClient;
use api::project_service_client::ProjectServiceClient;
use api::tenant_service_client::TenantServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::Node;

/// A tenant that its user shares with others: made by the user, with a login of its own.
async fn shared(node: &Node, user: &str) -> String {
    let mut tenants = TenantServiceClient::new(node.wire(Some(&node.login(user).await)));
    let request = api::TenantServiceCreateRequest {
        name: "shared".into(),
        ..Default::default()
    };
    let made = tenants.create(request).await.unwrap().into_inner();
    made.tenant.unwrap().login
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_of_a_tenant_cannot_go() {
    let node = Node::start().await;
    for user in ["ann", "bob"] {
        node.tenant(user).await;
    }
    let tenant = shared(&node, "ann").await;
    let mut ann = TenantServiceClient::new(node.wire(Some(&node.login("ann").await)));
    let mut admins = AdminTenantServiceClient::new(node.as_admin());
    let remove = |login: &str, member: &str| api::TenantServiceRemoveMemberRequest {
        login: login.to_owned(),
        member: member.to_owned(),
    };
    let admins_remove = |tenant: &str, member: &str| admin::TenantServiceRemoveMemberRequest {
        tenant: tenant.to_owned(),
        member: member.to_owned(),
    };
    let refused = ann.remove_member(remove(&tenant, "ann")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let refused = admins.remove_member(admins_remove(&tenant, "ann")).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    // An administrator is a viewer to the contract: leaving is the viewer's method.
    let mut leaving = TenantServiceClient::new(node.as_admin());
    let leave = api::TenantServiceLeaveRequest {
        login: tenant.clone(),
    };
    let stranger = leaving.leave(leave).await.unwrap_err();
    assert_eq!(stranger.code(), Code::NotFound, "{stranger}");

    let add = api::TenantServiceAddMemberRequest {
        login: tenant.clone(),
        member: "bob".into(),
        role: api::TenantRole::Owner.into(),
    };
    ann.add_member(add).await.unwrap();
    ann.remove_member(remove(&tenant, "ann")).await.unwrap();

    // Beside another owner too, a user keeps the tenant of its own login.
    let add = api::TenantServiceAddMemberRequest {
        login: "ann".into(),
        member: "bob".into(),
        role: api::TenantRole::Owner.into(),
    };
    ann.add_member(add).await.unwrap();
    let refused = ann.remove_member(remove("ann", "ann")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let demote = api::TenantServiceUpdateMemberRequest {
        login: "ann".into(),
        member: "ann".into(),
        role: api::TenantRole::Viewer.into(),
    };
    let refused = ann.update_member(demote).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_personal_tenant_is_not_deleted_by_its_user() {
    let node = Node::start().await;
    let (project, _) = node.tenant("ann").await;
    let ann = node.login("ann").await;
    let mut projects = ProjectServiceClient::new(node.wire(Some(&ann)));
    let delete = api::ProjectServiceDeleteRequest { project };
    projects.delete(delete).await.unwrap();
    let shared = shared(&node, "ann").await;
    let mut tenants = TenantServiceClient::new(node.wire(Some(&ann)));
    let delete = |login: &str| api::TenantServiceDeleteRequest {
        login: login.to_owned(),
    };
    let refused = tenants.delete(delete("ann")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("personal tenant"), "{refused}");
    tenants.delete(delete(&shared)).await.unwrap();
    // Nor does anybody else who owns it.
    let add = api::TenantServiceAddMemberRequest {
        login: "ann".into(),
        member: "bob".into(),
        role: api::TenantRole::Owner.into(),
    };
    tenants.add_member(add).await.unwrap();
    let bob = node.login("bob").await;
    let mut bobs = TenantServiceClient::new(node.wire(Some(&bob)));
    let refused = bobs.delete(delete("ann")).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    // An administrator removes the tenant of somebody who is gone.
    let mut admins = TenantServiceClient::new(node.as_admin());
    admins.delete(delete("ann")).await.unwrap();
    node.stop().await;
}
