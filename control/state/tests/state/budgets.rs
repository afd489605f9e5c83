//! What one user may have: tokens, tenants, projects, invites.

use control_state::*;
use proto_types::{Digest, TokenId};

use crate::world::{World, id, project, tenant, text};

fn token(number: u128, user: &str, world: &World) -> CreateToken {
    CreateToken {
        id: id(number),
        user: user.into(),
        description: String::new(),
        labels: Labels::new(),
        permissions: vec![],
        expires: world.now.plus_ms(3_600_000),
        token_type: TokenType::Api,
        project_roles: Default::default(),
        tenant_roles: Default::default(),
        admin_role: None,
        warrant: None,
        infra_role: None,
        machine_roles: Default::default(),
    }
}

/// Applies one command after another until one is refused: how many were not, and the refusal.
fn until_refused<T: Into<Op>>(
    world: &mut World,
    make: impl Fn(u128, &World) -> T,
) -> (u128, StateError) {
    for number in 0..2_000 {
        let op = make(number, world);
        if let Err(error) = world.apply(op).result {
            return (number, error);
        }
    }
    panic!("2000 were taken");
}

#[test]
fn tokens_of_a_user_are_bounded() {
    let mut world = World::empty();
    let ada = |number, world: &World| token(1_000 + number, "ada", world);
    let (count, error) = until_refused(&mut world, ada);
    assert_eq!(error.code, ErrorCode::TooMany, "{error}");
    assert_eq!(count, 200);
    assert!(error.hint.contains("metalmesh token revoke"), "{error}");
    world.ok(token(1, "bob", &world));
    // A revoked token gives its place away.
    world.ok(RevokeToken { id: id(1_000) });
    world.ok(token(2, "ada", &world));
    assert!(world.tables.get::<Token>(&id::<TokenId>(1_000)).is_none());
    assert_eq!(world.refused(token(3, "ada", &world)), ErrorCode::TooMany);
}

#[test]
fn logins_push_out_the_users_oldest_login() {
    let mut world = World::empty();
    let login = |number, world: &World| LogIn {
        login: text("ada"),
        name: "ada".into(),
        email: String::new(),
        avatar_url: String::new(),
        token: CreateToken {
            token_type: TokenType::User,
            ..token(number, "ada", world)
        },
    };
    for number in 1..=300 {
        world.later(1);
        let op = login(number, &world);
        world.ok(op);
    }
    assert_eq!(world.tables.all::<Token>().count(), 200);
    assert!(world.tables.get::<Token>(&id::<TokenId>(100)).is_none());
    assert!(world.tables.get::<Token>(&id::<TokenId>(101)).is_some());
}

#[test]
fn tokens_of_a_projects_components_are_counted_together() {
    let mut world = World::new();
    let component = |number, world: &World| CreateComponentToken {
        token: token(
            number,
            &user_of_component("gardener", &format!("name-{number}")),
            world,
        ),
        component: TokenComponent {
            project: id(1),
            kind: "gardener".into(),
            name: format!("name-{number}"),
        },
    };
    let (count, error) = until_refused(&mut world, component);
    assert_eq!((count, error.code), (200, ErrorCode::TooMany));
}

#[test]
fn tenants_that_a_user_makes_are_bounded() {
    let mut world = World::empty();
    let owned = |number: u128, _: &World| tenant(&format!("tenant-{number}"), Some("tester"));
    let (count, error) = until_refused(&mut world, owned);
    assert_eq!((count, error.code), (20, ErrorCode::TooMany), "{error}");
    // What nobody owns an administrator made, who is not bounded.
    world.ok(tenant("tenant-99", None));
}

#[test]
fn projects_of_a_tenant_are_bounded() {
    let mut world = World::new();
    let another = |number: u128, _: &World| project(100 + number, "acme");
    let (count, error) = until_refused(&mut world, another);
    assert_eq!((count, error.code), (198, ErrorCode::TooMany), "{error}");
    world.ok(DeleteProject { id: id(100) });
    world.ok(project(600, "acme"));
}

#[test]
fn open_invites_of_a_user_are_bounded_over_all_places() {
    let mut world = World::new();
    for number in 3..6 {
        world.ok(project(number, "acme"));
    }
    let invite = |number: u128, world: &World| CreateInvite {
        id: Digest::sha256([u8::try_from(number).unwrap(); 32]),
        sealed_secret: vec![1],
        to: InviteTo::Project {
            id: id(1 + number % 5),
            role: ProjectRole::Viewer,
        },
        warrant: Some(Warrant::Operator),
        expires_at: world.now.plus_ms(60_000),
    };
    let (count, error) = until_refused(&mut world, invite);
    assert_eq!((count, error.code), (100, ErrorCode::TooMany), "{error}");
    assert!(error.hint.contains("delete"), "{error}");
}

/// Switches take no more prefixes for a port.
#[test]
fn addresses_that_a_project_announces_are_bounded_by_no_quota() {
    let mut world = crate::world::upgraded();
    world.ok(CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["10.64.0.0/16".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(100),
        ..crate::world::network("internet")
    });
    world.ok(SetQuota {
        subject: QuotaSubject::Project(id(1)),
        limits: Limits {
            ips: Some(10_000),
            ..Limits::default()
        },
    });
    let mut take = |number: u128, network: &str| {
        let op = crate::world::ip(number, network, 1);
        // Without the proofs of `World::ok`, each of which looks at every address.
        let command = Command::new(world.now, "tester", op);
        apply(&mut world.tables, &command).result
    };
    take(10_000, "private").unwrap();
    for number in 0..4_096 {
        take(number, "internet").unwrap();
    }
    let error = take(20_000, "internet").unwrap_err();
    assert_eq!(error.code, ErrorCode::TooMany, "{error}");
    assert!(error.to_string().contains("\"internet\""), "{error}");
    take(20_001, "private").expect("a prefix of its own holds these");
}
