//! Who may do what, and what the others are told.

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::token_use_service_client::TokenUseServiceClient;
use tonic::Code;

use crate::node::Node;

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_all_sorts() {
    let node = Node::start().await;
    let list = |token: Option<String>| {
        let mut machines =
            admin::machine_service_client::MachineServiceClient::new(node.wire(token.as_deref()));
        async move {
            machines
                .list(admin::MachineServiceListRequest { query: None })
                .await
        }
    };
    assert!(list(Some(node.admin.clone())).await.is_ok());
    // As the reference server: there is no permission without a token.
    let nobody = list(None).await.unwrap_err();
    assert_eq!(nobody.code(), Code::PermissionDenied);
    assert!(nobody.message().starts_with("MM-1108"), "{nobody}");
    let mut broken = node.admin.clone();
    broken.pop();
    for bad in ["nonsense".to_owned(), broken, format!("{}x", node.admin)] {
        let refused = list(Some(bad)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert!(
            !refused.message().contains("signature"),
            "{}",
            refused.message()
        );
    }
    // Public methods need no token, but a bad one is refused there as well.
    let mut version = api::version_service_client::VersionServiceClient::new(node.wire(None));
    version.get(api::VersionServiceGetRequest {}).await.unwrap();
    let mut version =
        api::version_service_client::VersionServiceClient::new(node.wire(Some("nonsense")));
    let refused = version
        .get(api::VersionServiceGetRequest {})
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_dies_at_once() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let inner = api::TokenServiceCreateRequest {
        project_roles: [(project.clone(), api::ProjectRole::Viewer.into())].into(),
        ..Default::default()
    };
    let (id, secret) = node.token_of("acme", inner).await;
    let mut networks =
        api::network_service_client::NetworkServiceClient::new(node.wire(Some(&secret)));
    let request = api::NetworkServiceListRequest {
        project,
        query: None,
    };
    networks.list(request.clone()).await.unwrap();
    let mut tokens = admin::token_service_client::TokenServiceClient::new(node.as_admin());
    let revoke = admin::TokenServiceRevokeRequest {
        uuid: id,
        user: "acme".into(),
    };
    tokens.revoke(revoke).await.unwrap();
    let refused = networks.list(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(
        refused.message().starts_with("MM-1103"),
        "{}",
        refused.message()
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_sees_nothing() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let (own, foreign) = node.tenant("rival").await;
    let wire = node.wire(Some(&foreign));
    let mut networks = api::network_service_client::NetworkServiceClient::new(wire.clone());
    // By its project: the project itself does not exist for them.
    for (project, id) in [(project.clone(), network.clone()), (own.clone(), network)] {
        let request = api::NetworkServiceGetRequest { id, project };
        assert_eq!(
            networks.get(request).await.unwrap_err().code(),
            Code::NotFound
        );
    }
    let request = api::NetworkServiceListRequest {
        project: project.clone(),
        query: None,
    };
    assert_eq!(
        networks.list(request).await.unwrap_err().code(),
        Code::NotFound
    );
    let mut projects = api::project_service_client::ProjectServiceClient::new(wire.clone());
    let request = api::ProjectServiceGetRequest {
        project: project.clone(),
    };
    assert_eq!(
        projects.get(request).await.unwrap_err().code(),
        Code::NotFound
    );
    let mut machines = api::machine_service_client::MachineServiceClient::new(wire);
    let request = api::MachineServiceListRequest {
        project,
        query: None,
    };
    assert_eq!(
        machines.list(request).await.unwrap_err().code(),
        Code::NotFound
    );
    let request = api::MachineServiceListRequest {
        project: own,
        query: None,
    };
    assert!(
        machines
            .list(request)
            .await
            .unwrap()
            .into_inner()
            .machines
            .is_empty()
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_cannot_make_a_stronger_one() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let inner = api::TokenServiceCreateRequest {
        project_roles: [(project.clone(), api::ProjectRole::Viewer.into())].into(),
        permissions: vec![self_permissions(&[
            "/metalstack.api.v2.TokenService/Create",
        ])],
        ..Default::default()
    };
    let (_, secret) = node.token_of("acme", inner).await;
    let mut tokens = api::token_service_client::TokenServiceClient::new(node.wire(Some(&secret)));
    let with_role = |role: api::ProjectRole| api::TokenServiceCreateRequest {
        project_roles: [(project.clone(), role.into())].into(),
        ..Default::default()
    };
    tokens
        .create(with_role(api::ProjectRole::Viewer))
        .await
        .unwrap();
    for stronger in [
        with_role(api::ProjectRole::Owner),
        api::TokenServiceCreateRequest {
            admin_role: Some(2),
            ..Default::default()
        },
        api::TokenServiceCreateRequest {
            infra_role: Some(1),
            ..Default::default()
        },
        api::TokenServiceCreateRequest {
            permissions: vec![self_permissions(&[
                "/metalstack.api.v2.TokenService/Revoke",
            ])],
            ..Default::default()
        },
    ] {
        let refused = tokens.create(stronger.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{stronger:?}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_refreshes_and_revokes_itself() {
    let node = Node::start().await;
    node.tenant("acme").await;
    let service = "/metalstack.api.v2.TokenService/";
    let methods: Vec<String> = ["Get", "List", "Refresh", "Revoke"]
        .iter()
        .map(|name| format!("{service}{name}"))
        .collect();
    let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
    let inner = api::TokenServiceCreateRequest {
        permissions: vec![self_permissions(&methods)],
        expires: Some(prost_types::Duration {
            seconds: 700,
            nanos: 0,
        }),
        ..Default::default()
    };
    let (id, secret) = node.token_of("acme", inner).await;
    let mut tokens = api::token_service_client::TokenServiceClient::new(node.wire(Some(&secret)));
    let fresh = tokens
        .refresh(api::TokenServiceRefreshRequest {})
        .await
        .unwrap()
        .into_inner();
    let made = fresh.token.unwrap();
    let life = made.expires.unwrap().seconds - made.issued_at.unwrap().seconds;
    assert_eq!(life, 700);
    assert_ne!(made.uuid, id);
    tokens
        .revoke(api::TokenServiceRevokeRequest { uuid: id.clone() })
        .await
        .unwrap();
    let gone = tokens
        .get(api::TokenServiceGetRequest { uuid: id })
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Code::Unauthenticated);
    let mut renewed =
        api::token_service_client::TokenServiceClient::new(node.wire(Some(&fresh.secret)));
    let listed = renewed
        .list(api::TokenServiceListRequest { query: None })
        .await
        .unwrap();
    // The tenant's own token of the set-up, and the fresh one.
    assert_eq!(listed.into_inner().tokens.len(), 2);
    node.stop().await;
}

fn self_permissions(methods: &[&str]) -> api::PermissionsByVisibility {
    let methods = methods.iter().map(|method| (*method).to_owned()).collect();
    let visibility =
        api::permissions_by_visibility::Visibility::Self_(api::SelfPermissions { methods });
    api::PermissionsByVisibility {
        visibility: Some(visibility),
    }
}

/// The contract lets editors add members; upstream they could make themselves a second login
/// that owns the tenant.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_makes_others_what_one_is_not() {
    let node = Node::start().await;
    node.tenant("acme").await;
    for login in ["first", "second"] {
        node.tenant(login).await;
    }
    let wanted = api::TokenServiceCreateRequest {
        tenant_roles: [("acme".to_owned(), api::TenantRole::Editor.into())].into(),
        ..Default::default()
    };
    let (_, token) = node.token_of("acme", wanted).await;
    let mut editor = api::tenant_service_client::TenantServiceClient::new(node.wire(Some(&token)));
    let add = |member: &str, role: api::TenantRole| api::TenantServiceAddMemberRequest {
        login: "acme".into(),
        member: member.to_owned(),
        role: role.into(),
    };
    let refused = editor
        .add_member(add("first", api::TenantRole::Owner))
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let added = editor
        .add_member(add("first", api::TenantRole::Editor))
        .await;
    added.unwrap();
    let added = editor
        .add_member(add("second", api::TenantRole::Viewer))
        .await;
    added.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_a_rate_and_a_last_use() {
    let node = Node::start_bounded(60).await;
    let (project, token) = node.tenant("acme").await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let list = || api::MachineServiceListRequest {
        project: project.clone(),
        query: None,
    };
    let mut refused = None;
    for _ in 0..200 {
        if let Err(status) = machines.list(list()).await {
            refused = Some(status);
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("try again in"), "{refused}");
    let details = String::from_utf8_lossy(refused.details()).into_owned();
    assert!(details.contains("google.rpc.RetryInfo"), "{details}");
    assert!(details.contains("MM-1013"), "{details}");

    // An administrator works for everybody.
    let mut uses = TokenUseServiceClient::new(node.as_admin());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let all = uses.all(mesh::TokenUseServiceAllRequest {}).await.unwrap();
        let all = all.into_inner().uses;
        // The project's token and the administrator's.
        if all.iter().filter(|it| it.last_used.is_some()).count() == 2 {
            break;
        }
        assert!(std::time::Instant::now() < until, "{all:?}");
    }
    node.stop().await;
}
