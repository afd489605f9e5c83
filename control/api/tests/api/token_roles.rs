//! Roles and methods of tokens: taken away by updates, and listed under their own visibility.

use api::permissions_by_visibility::Visibility;
use api::token_service_client::TokenServiceClient;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::Node;

const IP_LIST: &str = "/metalstack.api.v2.IPService/List";
const VERSION: &str = "/metalstack.api.v2.VersionService/Get";
const USER: &str = "/metalstack.api.v2.UserService/Get";
const IMAGES: &str = "/metalstack.api.v2.ImageService/List";
const SIZES: &str = "/metalstack.admin.v2.SizeService/Create";
const PING: &str = "/metalstack.infra.v2.ComponentService/Ping";
const BOOT: &str = "/metalstack.infra.v2.BootService/Register";
const TENANT: &str = "/metalstack.api.v2.TenantService/Get";

/// Makes an entry of one visibility out of methods.
type List = fn(&[&str]) -> Visibility;

fn methods(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn listed(visibility: Visibility) -> api::PermissionsByVisibility {
    api::PermissionsByVisibility {
        visibility: Some(visibility),
    }
}

fn own(paths: &[&str]) -> Visibility {
    let methods = methods(paths);
    Visibility::Self_(api::SelfPermissions { methods })
}

fn public(paths: &[&str]) -> Visibility {
    let methods = methods(paths);
    Visibility::Public(api::PublicPermissions { methods })
}

fn project(paths: &[&str]) -> Visibility {
    project_of("*", paths)
}

fn project_of(project: &str, paths: &[&str]) -> Visibility {
    Visibility::Project(api::ProjectPermissions {
        project: project.to_owned(),
        methods: methods(paths),
    })
}

fn tenant(paths: &[&str]) -> Visibility {
    Visibility::Tenant(api::TenantPermissions {
        login: "*".into(),
        methods: methods(paths),
    })
}

fn machine(paths: &[&str]) -> Visibility {
    Visibility::Machine(api::MachinePermissions {
        uuid: "*".into(),
        methods: methods(paths),
    })
}

fn admin(paths: &[&str]) -> Visibility {
    let methods = methods(paths);
    Visibility::Admin(api::AdminPermissions { methods })
}

fn infra(paths: &[&str]) -> Visibility {
    let methods = methods(paths);
    Visibility::Infra(api::InfraPermissions { methods })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_takes_roles_away() {
    let node = Node::start().await;
    let mut tokens = TokenServiceClient::new(node.as_admin());
    let request = api::TokenServiceCreateRequest {
        admin_role: Some(api::AdminRole::Viewer.into()),
        infra_role: Some(api::InfraRole::Editor.into()),
        ..Default::default()
    };
    let made = tokens.create(request).await.unwrap().into_inner();
    let token = made.token.unwrap();
    let (viewer, editor) = (token.admin_role, token.infra_role);
    let update = |admin_role, infra_role| api::TokenServiceUpdateRequest {
        uuid: token.uuid.clone(),
        description: Some("of CI".into()),
        admin_role,
        infra_role,
        ..Default::default()
    };
    let none = Some(0);
    for ((admin_role, infra_role), left) in [
        ((None, None), (viewer, editor)),
        ((none, None), (None, editor)),
        ((Some(2), none), (Some(2), None)),
    ] {
        let changed = tokens.update(update(admin_role, infra_role)).await.unwrap();
        let changed = changed.into_inner().token.unwrap();
        assert_eq!((changed.admin_role, changed.infra_role), left);
    }
    // With the role goes what it allows.
    tokens.update(update(none, None)).await.unwrap();
    let mut sizes = proto_public::admin::v2::machine_service_client::MachineServiceClient::new(
        node.wire(Some(&made.secret)),
    );
    let list = proto_public::admin::v2::MachineServiceListRequest { query: None };
    let refused = sizes.list(list).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_without_methods_takes_all_methods_away() {
    let node = Node::start().await;
    let mut tokens = TokenServiceClient::new(node.as_admin());
    let request = api::TokenServiceCreateRequest {
        permissions: vec![listed(project(&[IP_LIST])), listed(own(&[USER]))],
        ..Default::default()
    };
    let made = tokens.create(request).await.unwrap().into_inner();
    let token = made.token.unwrap();
    let count = |token: &api::Token| -> usize {
        let methods = token.permissions.iter().map(|entry| entry.methods.len());
        methods.sum()
    };
    for (permissions, left) in [
        (vec![], 2),
        (vec![listed(own(&[USER]))], 1),
        (vec![listed(public(&[]))], 0),
    ] {
        let update = api::TokenServiceUpdateRequest {
            uuid: token.uuid.clone(),
            permissions,
            ..Default::default()
        };
        let changed = tokens.update(update).await.unwrap().into_inner();
        assert_eq!(count(&changed.token.unwrap()), left);
    }
    let user = api::UserServiceGetRequest::default();
    let mut users = api::user_service_client::UserServiceClient::new(node.wire(Some(&made.secret)));
    let refused = users.get(user).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_is_listed_under_its_own_visibility() {
    let node = Node::start().await;
    let (own_project, _) = node.tenant("acme").await;
    let mut tokens = TokenServiceClient::new(node.as_admin());
    let request = |visibilities: &[Visibility]| api::TokenServiceCreateRequest {
        permissions: visibilities.iter().cloned().map(listed).collect(),
        ..Default::default()
    };
    let lists: [(List, &[&str]); 7] = [
        (own, &[USER, IMAGES]),
        (public, &[VERSION]),
        (project, &[IP_LIST]),
        (tenant, &[TENANT]),
        (machine, &[BOOT]),
        (admin, &[SIZES]),
        (infra, &[PING]),
    ];
    for (at, (list, _)) in lists.iter().enumerate() {
        for (from, (_, theirs)) in lists.iter().enumerate() {
            let made = tokens.create(request(&[list(theirs)])).await;
            if at == from {
                made.unwrap();
                continue;
            }
            let refused = made.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
            assert!(refused.message().contains("visibility"), "{refused}");
        }
    }
    let unknown = tokens.create(request(&[own(&["/x.Y/Z"])])).await;
    assert_eq!(unknown.unwrap_err().code(), Code::PermissionDenied);

    // One entry for each visibility and subject, without a subject where there is none.
    let made = tokens
        .create(request(&[
            own(&[USER]),
            public(&[VERSION]),
            project(&[IP_LIST]),
            own(&[IMAGES, USER]),
        ]))
        .await
        .unwrap();
    let entry = |subject: &str, paths: &[&str]| api::MethodPermission {
        subject: subject.into(),
        methods: methods(paths),
    };
    assert_eq!(
        made.into_inner().token.unwrap().permissions,
        [
            entry("", &[IMAGES, USER]),
            entry("", &[VERSION]),
            entry("*", &[IP_LIST]),
        ]
    );

    // What is listed can be called, and hands itself on.
    let wanted = request(&[own(&[IMAGES, "/metalstack.api.v2.TokenService/Create"])]);
    let (_, secret) = node.token_of("acme", wanted).await;
    let wire = node.wire(Some(&secret));
    let mut images = api::image_service_client::ImageServiceClient::new(wire.clone());
    let list = api::ImageServiceListRequest { query: None };
    images.list(list).await.unwrap();
    let mut tokens = TokenServiceClient::new(wire.clone());
    tokens.create(request(&[own(&[IMAGES])])).await.unwrap();
    let mut ips = api::ip_service_client::IpServiceClient::new(wire);
    let list = api::IpServiceListRequest {
        project: own_project,
        query: None,
    };
    let unseen = ips.list(list).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound, "{unseen}");
    node.stop().await;
}

/// On the wire an empty map is the same as none, so that only another map takes an entry away.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_roles_by_map() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let mut tokens = TokenServiceClient::new(node.wire(Some(&node.login("acme").await)));
    let request = api::TokenServiceCreateRequest {
        project_roles: [
            (project.clone(), api::ProjectRole::Owner.into()),
            ("*".to_owned(), api::ProjectRole::Viewer.into()),
        ]
        .into(),
        tenant_roles: [("acme".to_owned(), api::TenantRole::Owner.into())].into(),
        permissions: vec![listed(project_of(&project, &[IP_LIST]))],
        ..Default::default()
    };
    let made = tokens.create(request).await.unwrap().into_inner();
    let made = made.token.unwrap();
    let update = |projects: &[(&str, api::ProjectRole)]| api::TokenServiceUpdateRequest {
        uuid: made.uuid.clone(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        project_roles: projects
            .iter()
            .map(|(project, role)| ((*project).to_owned(), (*role).into()))
            .collect(),
        ..Default::default()
    };
    for (projects, left) in [
        (vec![], made.project_roles.clone()),
        (
            vec![(project.as_str(), api::ProjectRole::Viewer)],
            [(project.clone(), api::ProjectRole::Viewer.into())].into(),
        ),
        (
            vec![],
            [(project.clone(), api::ProjectRole::Viewer.into())].into(),
        ),
    ] {
        let changed = tokens.update(update(&projects)).await.unwrap();
        let changed = changed.into_inner().token.unwrap();
        assert_eq!(changed.project_roles, left);
        assert_eq!(changed.tenant_roles, made.tenant_roles, "left out");
        assert_eq!(changed.permissions, made.permissions, "left out");
    }
    // Permissions and roles in tenants are changed the same way.
    let other = api::TokenServiceUpdateRequest {
        permissions: vec![listed(own(&[USER]))],
        tenant_roles: [("acme".to_owned(), api::TenantRole::Viewer.into())].into(),
        ..update(&[])
    };
    let changed = tokens.update(other).await.unwrap().into_inner();
    let changed = changed.token.unwrap();
    assert_eq!(changed.permissions[0].methods, methods(&[USER]));
    assert_eq!(changed.permissions.len(), 1);
    let viewer = i32::from(api::TenantRole::Viewer);
    assert_eq!(changed.tenant_roles, [("acme".to_owned(), viewer)].into());
    node.stop().await;
}
