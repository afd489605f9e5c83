//! Tenants, projects, tokens, and the catalog.

use control_state::*;
use proto_types::{Timestamp, TokenId};

use crate::world::*;

#[test]
fn members_keep_an_owner() {
    let mut world = World::new();
    let set = |member: &str, role, must_be_new| SetTenantMember {
        login: text("acme"),
        member: text(member),
        role,
        must_be_new,
    };
    let remove = |member: &str| RemoveTenantMember {
        login: text("acme"),
        member: text(member),
    };
    assert_eq!(
        world.refused(set("acme", TenantRole::Viewer, None)),
        ErrorCode::LastOwner
    );
    assert_eq!(
        world.refused(set("ann", TenantRole::Viewer, Some(false))),
        ErrorCode::NotFound
    );
    world.ok(set("ann", TenantRole::Owner, Some(true)));
    assert_eq!(
        world.refused(set("ann", TenantRole::Owner, Some(true))),
        ErrorCode::AlreadyExists
    );
    world.ok(remove("ann"));
    assert_eq!(world.refused(remove("ann")), ErrorCode::NotFound);
    let tenant = world.tables.get::<Tenant>(&text("acme")).unwrap();
    assert_eq!(tenant.members.len(), 1);
}

#[test]
fn the_last_owner_stays() {
    let mut world = World::new();
    world.ok(tenant("shared", Some("ann")));
    world.ok(tenant("nobodys", None));
    let remove = |login: &str, member: &str| RemoveTenantMember {
        login: text(login),
        member: text(member),
    };
    let set = |login: &str, member: &str, role| SetTenantMember {
        login: text(login),
        member: text(member),
        role,
        must_be_new: None,
    };
    let last = ErrorCode::LastOwner;
    assert_eq!(world.refused(remove("shared", "ann")), last);
    world.ok(set("shared", "bob", TenantRole::Editor));
    assert_eq!(world.refused(remove("shared", "ann")), last, "an editor");
    world.ok(set("shared", "bob", TenantRole::Owner));
    world.ok(remove("shared", "ann"));
    // Beside another owner too a user keeps its personal tenant.
    world.ok(set("acme", "bob", TenantRole::Owner));
    assert_eq!(world.refused(remove("acme", "acme")), last);
    assert_eq!(world.refused(set("acme", "acme", TenantRole::Viewer)), last);

    // The owners of a tenant own its projects; where there are none, a project keeps its own.
    for (tenant, number) in [("shared", 11), ("nobodys", 12)] {
        world.ok(CreateProject {
            name: "the-project".into(),
            owner: Some(text("cid")),
            ..project(number, tenant)
        });
    }
    let leave = |number| RemoveProjectMember {
        id: id(number),
        member: text("cid"),
    };
    assert_eq!(world.refused(leave(12)), last);
    world.ok(leave(11));
}

#[test]
fn roles_over_the_platform_are_taken_from_a_token() {
    let mut world = World::new();
    let soon = world.now.plus_ms(3_600_000);
    let role = Some(EditorViewer::Editor);
    world.ok(CreateToken {
        admin_role: role,
        infra_role: role,
        ..token(1, soon)
    });
    let update = |drop_admin_role, drop_infra_role| UpdateToken {
        id: id(1),
        lock: Lock::Server,
        description: None,
        labels: None,
        permissions: None,
        project_roles: None,
        tenant_roles: None,
        admin_role: None,
        infra_role: None,
        machine_roles: None,
        drop_admin_role,
        drop_infra_role,
        warrant: None,
    };
    for ((admin, infra), left) in [
        ((false, false), (role, role)),
        ((false, true), (role, None)),
        ((true, false), (None, None)),
    ] {
        let token = world.ok(update(admin, infra)).token().unwrap();
        assert_eq!((token.admin_role, token.infra_role), left);
    }
}

#[test]
fn projects_come_and_go() {
    let mut world = World::new();
    let create = |number, tenant: &str, name: &str| CreateProject {
        name: name.into(),
        owner: Some(text("ann")),
        ..project(number, tenant)
    };
    assert_eq!(
        world.refused(create(3, "nobody", "three")),
        ErrorCode::NotFound
    );
    assert_eq!(
        world.refused(create(3, "acme", "project-1")),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(create(1, "acme", "three")),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(create(3, "acme", "x")),
        ErrorCode::InvalidField
    );
    world.ok(create(3, "acme", "three"));
    assert_eq!(
        world.refused(DeleteTenant {
            login: text("acme"),
            personal: true
        }),
        ErrorCode::StillInUse
    );
    assert_eq!(
        world.refused(DeleteProject { id: id(1) }),
        ErrorCode::StillInUse,
        "has a network"
    );
    world.ok(DeleteProject { id: id(3) });
    assert_eq!(
        world.refused(DeleteProject { id: id(3) }),
        ErrorCode::NotFound
    );
}

#[test]
fn components_end_with_their_project() {
    let mut world = World::new();
    world.ok(project(3, "acme"));
    let expires = world.now.plus_ms(3_600_000);
    for (number, of) in [(31, 3), (11, 1)] {
        world.ok(CreateComponentToken {
            token: CreateToken {
                user: user_of_component("gardener", "one"),
                project_roles: Default::default(),
                ..token(number, expires)
            },
            component: TokenComponent {
                project: id(of),
                kind: "gardener".into(),
                name: "one".into(),
            },
        });
    }
    world.ok(DeleteProject { id: id(3) });
    let is_valid = |world: &World, number| {
        let token = world.tables.get::<Token>(&id::<TokenId>(number));
        token.is_some_and(|token| token.is_valid(world.now))
    };
    assert!(!is_valid(&world, 31));
    assert!(is_valid(&world, 11), "of another project");
}

fn token(number: u128, expires: Timestamp) -> CreateToken {
    CreateToken {
        id: id(number),
        user: "ann".into(),
        description: String::new(),
        labels: Labels::new(),
        permissions: vec![],
        expires,
        token_type: TokenType::Api,
        project_roles: [("*".to_owned(), ProjectRole::Owner)].into(),
        tenant_roles: [].into(),
        admin_role: None,
        infra_role: None,
        machine_roles: [].into(),
        warrant: None,
    }
}

#[test]
fn a_token_lists_a_bounded_number_of_subjects_and_methods() {
    let mut world = World::new();
    let soon = world.now.plus_ms(3_600_000);
    let listing = |subjects: usize, methods: usize| {
        let methods = vec!["/metalstack.api.v2.IPService/Get".to_owned(); methods];
        let entry = |number: usize| MethodPermission {
            subject: number.to_string(),
            methods: methods.clone(),
        };
        (0..subjects).map(entry).collect::<Vec<_>>()
    };
    let with = |number, permissions| CreateToken {
        permissions,
        ..token(number, soon)
    };
    // The role of "*" is a subject too.
    world.ok(with(1, listing(499, 4)));
    for too_many in [listing(500, 1), listing(20, 101)] {
        assert_eq!(
            world.refused(with(2, too_many.clone())),
            ErrorCode::InvalidField
        );
        let update = UpdateToken {
            id: id(1),
            lock: Lock::Server,
            description: None,
            labels: None,
            permissions: Some(too_many),
            project_roles: None,
            tenant_roles: None,
            admin_role: None,
            infra_role: None,
            machine_roles: None,
            drop_admin_role: false,
            drop_infra_role: false,
            warrant: None,
        };
        assert_eq!(world.refused(update), ErrorCode::InvalidField);
    }
    let mut long = token(2, soon);
    long.machine_roles = [("x".repeat(257), EditorViewer::Viewer)].into();
    assert_eq!(world.refused(long), ErrorCode::InvalidField);
    let mut far = token(2, soon);
    let logins = (0..17).map(|number| number.to_string()).collect();
    far.warrant = Some(Warrant::Members(logins));
    assert_eq!(world.refused(far), ErrorCode::InvalidField);
}

#[test]
fn tokens() {
    let mut world = World::new();
    let soon = world.now.plus_ms(3_600_000);
    assert_eq!(world.refused(token(1, world.now)), ErrorCode::InvalidField);
    let year = world.now.plus_ms(366 * 24 * 3_600_000);
    assert_eq!(world.refused(token(1, year)), ErrorCode::InvalidField);
    let made = world.ok(token(1, soon)).token().unwrap();
    assert!(made.is_valid(world.now) && !made.is_valid(soon));
    world.ok(TouchToken { id: id(1) });
    assert_eq!(
        world.apply(TouchToken { id: id(1) }).changes,
        vec![],
        "not at each call"
    );
    let revoked = world.ok(RevokeToken { id: id(1) }).token().unwrap();
    assert!(!revoked.is_valid(world.now));
    assert_eq!(world.apply(RevokeToken { id: id(1) }).changes, vec![]);
    world.tick(9 * 24 * 3_600_000);
    assert!(
        world.tables.get::<Token>(&id(1)).is_none(),
        "forgotten after a while"
    );
}

#[test]
fn sizes_do_not_overlap_and_match_again() {
    let mut world = World::new();
    world.waiting(1);
    let size = |name: &str, min, max| {
        let mut size = Size::clone(world.tables.get::<Size>(&text(SIZE)).unwrap());
        size.id = text(name);
        size.constraints[0].min = min;
        size.constraints[0].max = max;
        size
    };
    let (same, big) = (size("same", 4, 9), size("big", 5, 9));
    let mut without = size("without", 7, 8);
    without.constraints[0].min = 9;
    assert_eq!(world.refused(CreateSize(same)), ErrorCode::SizesOverlap);
    assert_eq!(world.refused(CreateSize(without)), ErrorCode::InvalidField);
    world.ok(CreateSize(big));
    assert_eq!(world.machine(1).size, Some(text(SIZE)));
    assert_eq!(
        world.refused(DeleteSize(text(SIZE))),
        ErrorCode::StillInUse,
        "nobody has the machine, and it is of that size all the same"
    );
    let mut constraints = world
        .tables
        .get::<Size>(&text(SIZE))
        .unwrap()
        .constraints
        .clone();
    constraints[0].max = 1;
    world.ok(UpdateSize {
        id: text(SIZE),
        lock: Lock::Server,
        name: None,
        description: None,
        constraints: Some(constraints),
        labels: None,
    });
    assert_eq!(world.machine(1).size, None);
    world.ok(DeleteSize(text(SIZE)));
    assert!(
        query::machine_obstacle(&world.tables, id(1))
            .unwrap()
            .contains("size")
    );
}

#[test]
fn bad_catalog_entries() {
    let mut world = World::new();
    let mut bad_vni = partition("p-2");
    bad_vni
        .meta
        .labels
        .insert(label::PROVISIONING_VNI.into(), "0".into());
    assert_eq!(
        world.refused(CreatePartition(bad_vni)),
        ErrorCode::InvalidField
    );
    let mut bad_digest = image("debian-13.0.1");
    bad_digest
        .meta
        .labels
        .insert(label::DIGEST.into(), "md5:1".into());
    assert_eq!(
        world.refused(CreateImage(bad_digest)),
        ErrorCode::InvalidField
    );
    let mut bad_url = image("debian-13.0.1");
    bad_url.url = "ftp://x".into();
    assert_eq!(world.refused(CreateImage(bad_url)), ErrorCode::InvalidField);
    assert_eq!(
        world.refused(CreateImage(image("debian"))),
        ErrorCode::ImageIdInvalid
    );
    assert_eq!(
        world.refused(CreateImage(image(IMAGE))),
        ErrorCode::AlreadyExists
    );
}

#[test]
fn a_project_may_have_viewers_only_when_its_tenant_has_an_owner() {
    let mut world = World::new();
    let set = |number, member: &str, role| SetProjectMember {
        id: id(number),
        member: text(member),
        role,
        must_be_new: None,
    };
    world.ok(set(1, "ann", ProjectRole::Viewer));
    world.ok(RemoveProjectMember {
        id: id(1),
        member: text("ann"),
    });
    world.ok(tenant("ownerless", None));
    world.ok(CreateProject {
        name: "three".into(),
        ..project(3, "ownerless")
    });
    let viewer = set(3, "ann", ProjectRole::Viewer);
    assert_eq!(world.refused(viewer), ErrorCode::LastOwner);
}
