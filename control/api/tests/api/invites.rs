//! Invites into tenants and projects, over gRPC.

use api::project_service_client::ProjectServiceClient;
use api::tenant_service_client::TenantServiceClient;
use proto_public::api::v2 as api;
use proto_public::api::v2::permissions_by_visibility::Visibility;
use tonic::Code;

use crate::node::Node;

/// A token for everything that its user may do in tenants and projects, and with invites.
async fn token(node: &Node, user: &str) -> String {
    let own = |service: &str, methods: &[&str]| {
        let path = |method: &&str| format!("/metalstack.api.v2.{service}/{method}");
        methods.iter().map(path).collect::<Vec<_>>()
    };
    let mut methods = own("TenantService", &["InviteGet", "InviteAccept"]);
    methods.extend(own(
        "ProjectService",
        &["InviteGet", "InviteAccept", "List"],
    ));
    let permissions = vec![api::PermissionsByVisibility {
        visibility: Some(Visibility::Self_(api::SelfPermissions { methods })),
    }];
    let all = "*".to_owned();
    let wanted = api::TokenServiceCreateRequest {
        permissions,
        project_roles: [(all.clone(), api::ProjectRole::Owner.into())].into(),
        tenant_roles: [(all, api::TenantRole::Owner.into())].into(),
        ..Default::default()
    };
    node.token_of(user, wanted).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_colleague_is_invited_into_a_project() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let (foreign, _) = node.tenant("guest").await;
    let mut owner = ProjectServiceClient::new(node.wire(Some(&token(&node, "acme").await)));
    let mut guest = ProjectServiceClient::new(node.wire(Some(&token(&node, "guest").await)));

    let invite = |project: &str| api::ProjectServiceInviteRequest {
        project: project.to_owned(),
        role: api::ProjectRole::Viewer.into(),
    };
    let refused = guest.invite(invite(&project)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let made = owner.invite(invite(&project)).await.unwrap();
    let made = made.into_inner().invite.unwrap();
    assert_eq!(made.secret.len(), 32);
    assert!(!made.joined);

    let list = api::ProjectServiceInvitesListRequest {
        project: project.clone(),
    };
    let listed = owner.invites_list(list.clone()).await.unwrap();
    assert_eq!(listed.into_inner().invites, std::slice::from_ref(&made));
    let get = api::ProjectServiceInviteGetRequest {
        secret: made.secret.clone(),
    };
    let seen = guest.invite_get(get).await.unwrap().into_inner();
    assert_eq!(seen.invite.unwrap().project_name, "acme-project");

    // A project's invite is none of a tenant, nor of another project.
    let secret = made.secret.clone();
    let mut tenants = TenantServiceClient::new(node.wire(Some(&token(&node, "guest").await)));
    let accept = api::TenantServiceInviteAcceptRequest {
        secret: secret.clone(),
    };
    let wrong = tenants.invite_accept(accept).await.unwrap_err();
    assert_eq!(wrong.code(), Code::NotFound);
    let delete = api::ProjectServiceInviteDeleteRequest {
        project: foreign,
        secret: secret.clone(),
    };
    let wrong = guest.invite_delete(delete).await.unwrap_err();
    assert_eq!(wrong.code(), Code::NotFound);

    let accept = api::ProjectServiceInviteAcceptRequest { secret };
    let joined = guest.invite_accept(accept.clone()).await.unwrap();
    assert_eq!(joined.into_inner().project, project);
    let get = api::ProjectServiceGetRequest {
        project: project.clone(),
    };
    let seen = guest.get(get).await.unwrap().into_inner();
    let member = seen.project_members.iter().find(|it| it.id == "guest");
    assert_eq!(
        member.map(|it| it.role),
        Some(api::ProjectRole::Viewer.into())
    );
    let again = guest.invite_accept(accept).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);
    assert!(!again.message().contains(&made.secret), "{again}");
    let listed = owner.invites_list(list).await.unwrap().into_inner();
    assert!(listed.invites.is_empty());
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_into_a_tenant_can_be_taken_back() {
    let node = Node::start().await;
    node.tenant("acme").await;
    node.tenant("guest").await;
    let mut owner = TenantServiceClient::new(node.wire(Some(&token(&node, "acme").await)));
    let mut guest = TenantServiceClient::new(node.wire(Some(&token(&node, "guest").await)));
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let invite = api::TenantServiceInviteRequest {
            login: "acme".into(),
            role: api::TenantRole::Editor.into(),
        };
        let made = owner.invite(invite).await.unwrap().into_inner();
        secrets.push(made.invite.unwrap().secret);
    }
    let [taken_back, kept]: [String; 2] = secrets.try_into().unwrap();
    let delete = api::TenantServiceInviteDeleteRequest {
        login: "acme".into(),
        secret: taken_back.clone(),
    };
    owner.invite_delete(delete).await.unwrap();
    let accept = |secret: &str| api::TenantServiceInviteAcceptRequest {
        secret: secret.to_owned(),
    };
    let refused = guest.invite_accept(accept(&taken_back)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let joined = guest.invite_accept(accept(&kept)).await.unwrap();
    assert_eq!(joined.into_inner().tenant, "acme");
    let get = api::TenantServiceGetRequest {
        login: "acme".into(),
    };
    let seen = guest.get(get).await.unwrap().into_inner();
    let member = seen.tenant_members.iter().find(|it| it.id == "guest");
    assert_eq!(
        member.map(|it| it.role),
        Some(api::TenantRole::Editor.into())
    );
    node.stop().await;
}
