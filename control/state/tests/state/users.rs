//! Built-in users and logins.

use control_state::{
    CreateToken, CreateUser, DeleteUser, ErrorCode, LogIn, PasswordHash, SetPassword, Tenant,
    TenantRole, Token, TokenType, User,
};
use proto_types::{TenantId, TokenId};

use crate::world::World;

fn login(text: &str) -> TenantId {
    text.parse().unwrap()
}

fn password(byte: u8) -> PasswordHash {
    PasswordHash {
        salt: vec![byte; 16],
        hash: vec![byte; 32],
        memory_kib: 1,
        passes: 1,
    }
}

fn create(name: &str) -> CreateUser {
    CreateUser {
        login: login(name),
        name: name.into(),
        email: String::new(),
        password: password(1),
    }
}

fn token(world: &World, number: u128, user: &str, token_type: TokenType) -> CreateToken {
    CreateToken {
        id: TokenId::new(uuid::Uuid::from_u128(number)),
        user: user.into(),
        description: String::new(),
        labels: Default::default(),
        permissions: Vec::new(),
        expires: world.now.plus_ms(1_000_000),
        token_type,
        project_roles: Default::default(),
        tenant_roles: Default::default(),
        admin_role: None,
        infra_role: None,
        machine_roles: Default::default(),
        warrant: None,
    }
}

fn enter(world: &World, number: u128, user: &str) -> LogIn {
    LogIn {
        login: login(user),
        name: user.into(),
        email: String::new(),
        avatar_url: String::new(),
        token: token(world, number, user, TokenType::User),
    }
}

fn valid(world: &World) -> Vec<u128> {
    let all = world.tables.all::<Token>();
    let valid = all.filter(|token| token.is_valid(world.now));
    valid.map(|token| token.id.uuid().as_u128()).collect()
}

#[test]
fn a_login_makes_tenant_and_token() {
    let mut world = World::empty();
    world.ok(create("ada"));
    assert_eq!(world.refused(create("ada")), ErrorCode::AlreadyExists);
    let ada = enter(&world, 1, "ada");
    world.ok(ada);
    let tenant = world.tables.get::<Tenant>(&login("ada")).unwrap();
    assert_eq!(tenant.members[&login("ada")].role, TenantRole::Owner);
    let before = tenant.meta.generation;
    let ada = enter(&world, 2, "ada");
    world.ok(ada);
    let tenant = world.tables.get::<Tenant>(&login("ada")).unwrap();
    assert_eq!(
        tenant.meta.generation, before,
        "the second login changes no tenant"
    );
    assert_eq!(valid(&world), [1, 2]);
    let user = world.tables.get::<User>(&login("ada")).unwrap();
    assert_eq!(user.logged_in_at, Some(world.now));

    let mut other = enter(&world, 3, "ada");
    other.token.user = "admin".into();
    assert_eq!(world.refused(other), ErrorCode::Internal);
    let mut other = enter(&world, 3, "ada");
    other.token.token_type = TokenType::Api;
    assert_eq!(world.refused(other), ErrorCode::Internal);
}

#[test]
fn a_new_password_ends_sessions_and_removal_ends_all() {
    let mut world = World::empty();
    world.ok(create("ada"));
    for (number, user) in [(1, "ada"), (2, "bob")] {
        let op = enter(&world, number, user);
        world.ok(op);
    }
    let api = token(&world, 3, "ada", TokenType::Api);
    world.ok(api);
    let set = SetPassword {
        login: login("ada"),
        password: password(2),
    };
    world.ok(set);
    assert_eq!(valid(&world), [2, 3]);
    world.ok(DeleteUser {
        login: login("ada"),
    });
    assert_eq!(valid(&world), [2]);
    assert!(world.tables.get::<Tenant>(&login("ada")).is_some());
    let gone = world.refused(DeleteUser {
        login: login("ada"),
    });
    assert_eq!(gone, ErrorCode::NotFound);
}

#[test]
fn hashes_are_not_printed() {
    assert!(!format!("{:?}", create("ada")).contains("[1, 1"));
}
