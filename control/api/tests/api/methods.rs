//! What a token is told that it may call is what it may call.

use api::method_service_client::MethodServiceClient;
use api::permissions_by_visibility::Visibility;
use proto_public::api::v2 as api;

use crate::node::Node;
use crate::policy::{about, set};

const LIST: &str = "metalstack.api.v2.MachineService/List";
const CREATE: &str = "metalstack.api.v2.MachineService/Create";
const TENANT: &str = "metalstack.api.v2.TenantService/Get";
const PARTITIONS: &str = "metalstack.admin.v2.PartitionService/Create";
const VERSION: &str = "metalstack.api.v2.VersionService/Get";

/// A token for a project that may also ask what it may.
async fn token(node: &Node, project: &str, role: api::ProjectRole) -> String {
    let methods = vec!["/metalstack.api.v2.MethodService/TokenScopedList".to_owned()];
    let wanted = api::TokenServiceCreateRequest {
        permissions: vec![api::PermissionsByVisibility {
            visibility: Some(Visibility::Self_(api::SelfPermissions { methods })),
        }],
        project_roles: [(project.to_owned(), role.into())].into(),
        ..Default::default()
    };
    node.token_of("acme", wanted).await.1
}

async fn listed(node: &Node, token: &str) -> api::MethodServiceTokenScopedListResponse {
    let mut methods = MethodServiceClient::new(node.wire(Some(token)));
    let request = api::MethodServiceTokenScopedListRequest {};
    methods
        .token_scoped_list(request)
        .await
        .unwrap()
        .into_inner()
}

/// The subjects for which a method is listed.
async fn subjects(node: &Node, token: &str, method: &str) -> Vec<String> {
    let path = format!("/{method}");
    let all = listed(node, token).await.permissions.into_iter();
    let with = all.filter(|it| it.methods.contains(&path));
    with.map(|it| it.subject).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_is_told_what_it_may_call_and_on_what() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let owner = token(&node, &project, api::ProjectRole::Owner).await;
    let (rivals, _) = node.tenant("rival").await;
    let login = node.login("acme").await;
    let viewer = token(&node, &project, api::ProjectRole::Viewer).await;
    let own = vec![project.clone()];
    let (tenant, all, none) = (vec!["acme".to_owned()], vec!["*".to_owned()], vec![]);
    for (whose, token, expected) in [
        ("login", &login, [&own, &own, &tenant, &none, &all]),
        ("owner", &owner, [&own, &own, &none, &none, &all]),
        ("viewer", &viewer, [&own, &none, &none, &none, &all]),
        ("admin", &node.admin, [&all, &all, &all, &all, &all]),
    ] {
        for (method, expected) in [LIST, CREATE, TENANT, PARTITIONS, VERSION]
            .iter()
            .zip(expected)
        {
            let found = subjects(&node, token, method).await;
            assert_eq!(found, *expected, "{method} for {whose}");
        }
    }
    let told = listed(&node, &login).await;
    let owns = i32::from(api::ProjectRole::Owner);
    assert_eq!(told.project_roles, [(project, owns)].into());
    assert!(!told.permissions.iter().any(|it| it.subject == rivals));
    let owns = i32::from(api::TenantRole::Owner);
    assert_eq!(told.tenant_roles, [("acme".to_owned(), owns)].into());
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_policies_give_and_take_is_told() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let viewer = token(&node, &project, api::ProjectRole::Viewer).await;
    let is_viewer = "if input.roles.project == \"viewer\"";
    let deny = format!("deny contains \"closed\" {is_viewer}");
    set(&node, "night", &about(LIST, &deny)).await.unwrap();
    let allow = format!("allow contains \"loose\" {is_viewer}");
    set(&node, "loose", &about(CREATE, &allow)).await.unwrap();
    assert_eq!(subjects(&node, &viewer, LIST).await, [""; 0]);
    assert_eq!(subjects(&node, &viewer, CREATE).await, [project]);
    node.stop().await;
}
