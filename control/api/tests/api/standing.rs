//! Rights over the platform end with the membership that they came from.

use std::time::Duration;

use admin::machine_service_client::MachineServiceClient;
use admin::token_service_client::TokenServiceClient as AdminTokens;
use api::project_service_client::ProjectServiceClient;
use api::tenant_service_client::TenantServiceClient;
use api::token_service_client::TokenServiceClient;
use infra::component_service_client::ComponentServiceClient;
use mesh::watch_service_client::WatchServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::{Code, Status};

use crate::node::{Node, PROVIDER};

const PATIENCE: Duration = Duration::from_secs(20);
const OF_TOKENS: [&str; 3] = [
    "/metalstack.api.v2.TokenService/Create",
    "/metalstack.api.v2.TokenService/Refresh",
    "/metalstack.api.v2.TokenService/Update",
];

/// Has a user be what the role says in the provider's tenant.
async fn appoint(node: &Node, user: &str, role: api::TenantRole) {
    let mut tenants = TenantServiceClient::new(node.as_admin());
    let add = api::TenantServiceAddMemberRequest {
        login: PROVIDER.into(),
        member: user.into(),
        role: role.into(),
    };
    tenants.add_member(add).await.unwrap();
}

/// Removes a user from the provider's tenant, in which somebody else stays owner.
async fn dismiss(node: &Node, user: &str) {
    let mut tenants = TenantServiceClient::new(node.as_admin());
    let keeper = api::TenantServiceAddMemberRequest {
        login: PROVIDER.into(),
        member: "keeper".into(),
        role: api::TenantRole::Owner.into(),
    };
    if let Err(status) = tenants.add_member(keeper).await {
        assert_eq!(status.code(), Code::AlreadyExists, "{status}");
    }
    let remove = api::TenantServiceRemoveMemberRequest {
        login: PROVIDER.into(),
        member: user.into(),
    };
    tenants.remove_member(remove).await.unwrap();
}

fn methods(paths: &[&str]) -> api::SelfPermissions {
    api::SelfPermissions {
        methods: paths.iter().map(|path| (*path).to_owned()).collect(),
    }
}

fn of_admin(role: api::AdminRole) -> api::TokenServiceCreateRequest {
    let own = api::permissions_by_visibility::Visibility::Self_(methods(&OF_TOKENS));
    api::TokenServiceCreateRequest {
        admin_role: Some(role.into()),
        permissions: vec![api::PermissionsByVisibility {
            visibility: Some(own),
        }],
        ..Default::default()
    }
}

async fn own_token(
    node: &Node,
    secret: &str,
    wanted: api::TokenServiceCreateRequest,
) -> Result<String, Status> {
    let mut tokens = TokenServiceClient::new(node.wire(Some(secret)));
    tokens
        .create(wanted)
        .await
        .map(|made| made.into_inner().secret)
}

/// A token of another user, made with an administrator's.
async fn token_for(
    node: &Node,
    secret: &str,
    user: &str,
    wanted: api::TokenServiceCreateRequest,
) -> Result<String, Status> {
    let mut tokens = AdminTokens::new(node.wire(Some(secret)));
    let request = admin::TokenServiceCreateRequest {
        user: Some(user.into()),
        token_create_request: Some(wanted),
    };
    tokens
        .create(request)
        .await
        .map(|made| made.into_inner().secret)
}

async fn machines(node: &Node, secret: &str) -> Result<(), Status> {
    let mut machines = MachineServiceClient::new(node.wire(Some(secret)));
    let all = admin::MachineServiceListRequest { query: None };
    machines.list(all).await.map(drop)
}

async fn ping(node: &Node, secret: &str) -> Result<(), Status> {
    let mut components = ComponentServiceClient::new(node.wire(Some(secret)));
    components.ping(crate::infra::ping("v1")).await.map(drop)
}

async fn super_user_password(node: &Node, secret: &str, uuid: &str) -> Code {
    let mut boots = infra::boot_service_client::BootServiceClient::new(node.wire(Some(secret)));
    let request = infra::BootServiceSuperUserPasswordRequest { uuid: uuid.into() };
    let outcome = boots.super_user_password(request).await;
    outcome.map_or_else(|status| status.code(), |_| Code::Ok)
}

async fn refresh(node: &Node, secret: &str) -> Result<(), Status> {
    let mut tokens = TokenServiceClient::new(node.wire(Some(secret)));
    let request = api::TokenServiceRefreshRequest {};
    tokens.refresh(request).await.map(drop)
}

fn code(outcome: &Result<(), Status>) -> Code {
    outcome.as_ref().map_or_else(Status::code, |()| Code::Ok)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dismissed_administrator_keeps_nothing() {
    let node = Node::start().await;
    node.data_centre().await;
    let machine = node.waiting_machine(7).await;
    node.tenant("boss").await;
    appoint(&node, "boss", api::TenantRole::Owner).await;
    let login = node.login("boss").await;
    let editor = of_admin(api::AdminRole::Editor);
    let boss = own_token(&node, &login, editor.clone()).await.unwrap();
    let child = own_token(&node, &boss, editor).await.unwrap();
    // What it made for others, with a secret that it saw.
    let ghost = of_admin(api::AdminRole::Editor);
    let ghost = token_for(&node, &boss, "ghost", ghost).await.unwrap();
    let agent = api::TokenServiceCreateRequest {
        infra_role: Some(api::InfraRole::Editor.into()),
        ..Default::default()
    };
    let agent = token_for(&node, &boss, "agent", agent).await.unwrap();
    let hammer = api::TokenServiceCreateRequest {
        machine_roles: [("*".to_owned(), api::MachineRole::Editor.into())].into(),
        ..Default::default()
    };
    let hammer = own_token(&node, &boss, hammer).await.unwrap();
    let list = "/metalstack.admin.v2.MachineService/List".to_owned();
    let listed = api::permissions_by_visibility::Visibility::Admin(api::AdminPermissions {
        methods: vec![list],
    });
    let lister = api::TokenServiceCreateRequest {
        permissions: vec![api::PermissionsByVisibility {
            visibility: Some(listed),
        }],
        ..Default::default()
    };
    let lister = own_token(&node, &boss, lister).await.unwrap();
    for secret in [&boss, &child, &ghost, &lister] {
        machines(&node, secret).await.unwrap();
    }
    ping(&node, &agent).await.unwrap();
    let before = super_user_password(&node, &hammer, &machine).await;
    assert_ne!(before, Code::PermissionDenied);
    refresh(&node, &boss).await.unwrap();
    let mut watches = WatchServiceClient::new(node.wire(Some(&boss)));
    let request = mesh::WatchServiceAllRequest::default();
    let mut watch = watches.all(request).await.unwrap().into_inner();

    dismiss(&node, "boss").await;
    for secret in [&boss, &child, &ghost, &lister] {
        let refused = machines(&node, secret).await;
        assert_eq!(code(&refused), Code::PermissionDenied, "{refused:?}");
    }
    assert_eq!(code(&ping(&node, &agent).await), Code::PermissionDenied);
    let after = super_user_password(&node, &hammer, &machine).await;
    assert_eq!(after, Code::PermissionDenied);
    let refused = refresh(&node, &boss).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("admin role"), "{refused}");
    let ended = async {
        loop {
            match watch.message().await {
                Ok(Some(_)) => {}
                end => return end,
            }
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert_eq!(ended.unwrap_err().code(), Code::PermissionDenied);

    // The operator's own token rests on the node, not on a membership.
    machines(&node, &node.admin).await.unwrap();
    node.stop().await;
}

/// Everything that a member may do in tenants and projects, and with invites.
fn of_member() -> api::TokenServiceCreateRequest {
    let own = methods(&[
        "/metalstack.api.v2.TenantService/InviteAccept",
        "/metalstack.api.v2.ProjectService/InviteAccept",
    ]);
    let own = api::permissions_by_visibility::Visibility::Self_(own);
    let all = "*".to_owned();
    api::TokenServiceCreateRequest {
        permissions: vec![api::PermissionsByVisibility {
            visibility: Some(own),
        }],
        project_roles: [(all.clone(), api::ProjectRole::Owner.into())].into(),
        tenant_roles: [(all, api::TenantRole::Owner.into())].into(),
        ..Default::default()
    }
}

async fn invite_into_provider(node: &Node, secret: &str) -> String {
    let mut tenants = TenantServiceClient::new(node.wire(Some(secret)));
    let request = api::TenantServiceInviteRequest {
        login: PROVIDER.into(),
        role: api::TenantRole::Owner.into(),
    };
    let made = tenants.invite(request).await.unwrap().into_inner();
    made.invite.unwrap().secret
}

async fn invite_into(node: &Node, secret: &str, project: &str) -> String {
    let mut projects = ProjectServiceClient::new(node.wire(Some(secret)));
    let request = api::ProjectServiceInviteRequest {
        project: project.into(),
        role: api::ProjectRole::Owner.into(),
    };
    let made = projects.invite(request).await.unwrap().into_inner();
    made.invite.unwrap().secret
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dismissed_administrator_left_behind_is_void() {
    let node = Node::start().await;
    node.tenant("boss").await;
    node.tenant("friend").await;
    let (project, _) = node.tenant("alice").await;
    appoint(&node, "boss", api::TenantRole::Owner).await;
    let login = node.login("boss").await;
    let boss = of_admin(api::AdminRole::Editor);
    let boss = own_token(&node, &login, boss).await.unwrap();
    let member = own_token(&node, &login, of_member()).await.unwrap();
    let friend = node.token_of("friend", of_member()).await.1;

    // In alice's name, with a secret that the administrator saw, and what that one made again.
    let as_alice = token_for(&node, &boss, "alice", of_member()).await.unwrap();
    let get = |secret: &str| {
        let mut projects = ProjectServiceClient::new(node.wire(Some(secret)));
        let project = project.clone();
        async move {
            let request = api::ProjectServiceGetRequest { project };
            projects.get(request).await.map(drop)
        }
    };
    get(&as_alice).await.unwrap();
    let into_provider = [
        invite_into_provider(&node, &boss).await,
        invite_into_provider(&node, &member).await,
    ];
    let into_project = [
        invite_into(&node, &boss, &project).await,
        invite_into(&node, &as_alice, &project).await,
    ];

    dismiss(&node, "boss").await;
    assert_eq!(get(&as_alice).await.unwrap_err().code(), Code::NotFound);
    for (who, secret) in [&member, &friend]
        .into_iter()
        .flat_map(|who| into_provider.iter().map(move |secret| (who, secret)))
    {
        let mut tenants = TenantServiceClient::new(node.wire(Some(who)));
        let accept = api::TenantServiceInviteAcceptRequest {
            secret: secret.clone(),
        };
        let refused = tenants.invite_accept(accept).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
    }
    let mut projects = ProjectServiceClient::new(node.wire(Some(&friend)));
    for secret in into_project {
        let accept = api::ProjectServiceInviteAcceptRequest { secret };
        let refused = projects.invite_accept(accept).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_role_leaves_a_weaker_token() {
    let node = Node::start().await;
    node.tenant("boss").await;
    appoint(&node, "boss", api::TenantRole::Owner).await;
    let login = node.login("boss").await;
    let editor = own_token(&node, &login, of_admin(api::AdminRole::Editor)).await;
    let editor = editor.unwrap();
    token_for(&node, &editor, "agent", Default::default())
        .await
        .unwrap();
    dismiss(&node, "boss").await;
    appoint(&node, "boss", api::TenantRole::Viewer).await;
    machines(&node, &editor).await.unwrap();
    let refused = token_for(&node, &editor, "agent", Default::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    let refused = refresh(&node, &editor).await;
    assert_eq!(code(&refused), Code::PermissionDenied);
    // Rights that could not be used are not given either, by nobody.
    let wanted = of_admin(api::AdminRole::Editor);
    let refused = token_for(&node, &node.admin, "boss", wanted)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("\"boss\""), "{refused}");
    let wanted = of_admin(api::AdminRole::Viewer);
    token_for(&node, &node.admin, "boss", wanted).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_is_not_locked_out_by_memberships() {
    let node = Node::start().await;
    node.tenant("boss").await;
    appoint(&node, "boss", api::TenantRole::Owner).await;
    let viewer = of_admin(api::AdminRole::Viewer);
    let made = own_token(&node, &node.admin, viewer.clone()).await.unwrap();
    machines(&node, &made).await.unwrap();
    dismiss(&node, "admin").await;
    machines(&node, &node.admin).await.unwrap();
    assert_eq!(code(&machines(&node, &made).await), Code::PermissionDenied);
    // Of a user without a membership, what the operator makes rests on the operator.
    let made = own_token(&node, &node.admin, viewer).await.unwrap();
    machines(&node, &made).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lists_no_more_than_calls_can_read() {
    let node = Node::start().await;
    let name = |number: u32| uuid::Uuid::from_u128(u128::from(number)).to_string();
    let role: i32 = api::ProjectRole::Viewer.into();
    let too_many = api::TokenServiceCreateRequest {
        project_roles: (0..501).map(|number| (name(number), role)).collect(),
        ..Default::default()
    };
    let refused = own_token(&node, &node.admin, too_many).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("500 subjects"), "{refused}");
    let all: Vec<String> = (proto_public::methods().iter())
        .filter(|method| matches!(method.scope, proto_public::Scope::Project(_)))
        .map(|method| method.path.clone())
        .collect();
    let many = (0..100).map(|number| api::PermissionsByVisibility {
        visibility: Some(api::permissions_by_visibility::Visibility::Project(
            api::ProjectPermissions {
                project: name(number),
                methods: all.clone(),
            },
        )),
    });
    let too_many = api::TokenServiceCreateRequest {
        permissions: many.collect(),
        ..Default::default()
    };
    let refused = own_token(&node, &node.admin, too_many).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("2000 methods"), "{refused}");
    node.stop().await;
}
