//! The cases that a table of methods does not show: stars, lists, lost and weakened memberships.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]
#![allow(clippy::print_stdout, reason = "says what was compared")]
mod common;

use common::{MACHINE, PROJECT, TENANT, api, memberships, user};
use control_authz::{Actor, Denied, Permissions, Permit, SystemActor, TokenRights, may_grant};
use control_authz::{authorise, authorise_path};
use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::api::v2::{IpServiceGetRequest, IpServiceUpdateRequest};

const GET: &str = "/metalstack.api.v2.IPService/Get";
const UPDATE: &str = "/metalstack.api.v2.IPService/Update";
const LEAVE: &str = "/metalstack.api.v2.ProjectService/Leave";
const IMAGES: &str = "/metalstack.api.v2.ImageService/List";
const VERSION: &str = "/metalstack.api.v2.VersionService/Get";
const WAIT: &str = "/metalstack.infra.v2.BootService/Wait";

fn star(role: ProjectRole) -> TokenRights {
    TokenRights {
        project_roles: [("*".to_owned(), role)].into(),
        ..TokenRights::default()
    }
}

fn listing(subject: &str, paths: &[&str]) -> TokenRights {
    let mut permissions = Permissions::default();
    for path in paths {
        assert!(permissions.add(subject, path));
    }
    TokenRights {
        permissions,
        ..TokenRights::default()
    }
}

fn found(result: &Result<Permit, Denied>) -> &'static str {
    match result {
        Ok(_) => "yes",
        Err(Denied::Unauthenticated) => "401",
        Err(Denied::Forbidden { .. }) => "403",
        Err(Denied::NotFound { .. }) => "404",
        Err(Denied::UnknownMethod(_)) => "501",
        Err(Denied::ByRule { .. } | Denied::Unjudged { .. }) => "policy",
    }
}

#[test]
fn tokens_against_memberships() {
    use ProjectRole::{Editor, Owner, Viewer};
    let of = |role| memberships(&[], &[(PROJECT, role)]);
    let tenant = |role| memberships(&[(TENANT, role)], &[]);
    let none = || memberships(&[], &[]);
    let cases = [
        (
            "star reaches where the user is member",
            star(Editor),
            of(Editor),
            UPDATE,
            "yes",
        ),
        (
            "star does not reach further",
            star(Owner),
            none(),
            GET,
            "404",
        ),
        (
            "a tenant's role is lent",
            star(Editor),
            tenant(TenantRole::Owner),
            UPDATE,
            "yes",
        ),
        (
            "a guest is lent nothing",
            star(Editor),
            tenant(TenantRole::Guest),
            GET,
            "404",
        ),
        (
            "the stronger role counts",
            star(Owner),
            of(Owner),
            LEAVE,
            "403",
        ),
        ("roles are exact", star(Viewer), of(Owner), LEAVE, "yes"),
        (
            "a weaker user weakens its token",
            star(Owner),
            of(Viewer),
            UPDATE,
            "403",
        ),
        ("but may still read", star(Owner), of(Viewer), GET, "yes"),
        ("a weaker token", star(Viewer), of(Owner), UPDATE, "403"),
        (
            "listed for the project",
            listing(PROJECT, &[UPDATE]),
            of(Editor),
            UPDATE,
            "yes",
        ),
        (
            "listed, another method",
            listing(PROJECT, &[GET]),
            of(Editor),
            UPDATE,
            "403",
        ),
        (
            "listed, user too weak",
            listing(PROJECT, &[UPDATE]),
            of(Viewer),
            UPDATE,
            "403",
        ),
        (
            "listed, membership lost",
            listing(PROJECT, &[UPDATE]),
            none(),
            UPDATE,
            "404",
        ),
        (
            "listed for all",
            listing("*", &[UPDATE]),
            of(Editor),
            UPDATE,
            "yes",
        ),
        (
            "token of another project",
            listing("p2", &[UPDATE]),
            of(Editor),
            UPDATE,
            "404",
        ),
        (
            "own methods need listing",
            star(Owner),
            of(Owner),
            IMAGES,
            "403",
        ),
        (
            "own methods, listed",
            listing("*", &[IMAGES]),
            none(),
            IMAGES,
            "yes",
        ),
        ("public ones do not", star(Owner), none(), VERSION, "yes"),
        ("unknown method", star(Owner), of(Owner), "/x.Y/Z", "501"),
    ];
    for (name, rights, directory, path, expected) in cases {
        let got = authorise_path(path, &api(rights), &directory, Some(PROJECT));
        assert_eq!(found(&got), expected, "{name}: {got:?}");
    }
}

#[test]
fn a_log_in_has_the_rights_of_its_user_only() {
    let mut who = user();
    who.rights = TokenRights {
        admin_role: Some(AdminRole::Editor),
        ..star(ProjectRole::Owner)
    };
    let directory = memberships(&[], &[(PROJECT, ProjectRole::Viewer)]);
    let ask = |path| authorise_path(path, &who, &directory, Some(PROJECT));
    assert_eq!(found(&ask(GET)), "yes");
    assert_eq!(found(&ask(UPDATE)), "403");
    assert_eq!(
        found(&authorise_path(GET, &who, &directory, Some("p2"))),
        "404"
    );
    assert_eq!(found(&authorise_path(GET, &who, &directory, None)), "404");
}

#[test]
fn a_direct_project_member_is_guest_of_the_tenant() {
    let path = "/metalstack.api.v2.TenantService/Get";
    let directory = memberships(&[], &[(PROJECT, ProjectRole::Viewer)]);
    assert_eq!(
        found(&authorise_path(path, &user(), &directory, Some(TENANT))),
        "yes"
    );
    assert_eq!(
        found(&authorise_path(path, &user(), &directory, Some("globex"))),
        "404"
    );
}

#[test]
fn a_machine_knows_only_itself() {
    let rights = TokenRights {
        machine_roles: [(MACHINE.to_owned(), MachineRole::Editor)].into(),
        ..TokenRights::default()
    };
    let directory = memberships(&[], &[]);
    let ask = |uuid| {
        found(&authorise_path(
            WAIT,
            &api(rights.clone()),
            &directory,
            Some(uuid),
        ))
    };
    assert_eq!((ask(MACHINE), ask("m2")), ("yes", "404"));
    assert_eq!(
        found(&authorise_path(WAIT, &user(), &directory, Some(MACHINE))),
        "403"
    );
}

#[test]
fn typed_requests_carry_their_subject_into_the_permit() {
    let directory = memberships(&[], &[(PROJECT, ProjectRole::Viewer)]);
    let get = IpServiceGetRequest {
        project: PROJECT.to_owned(),
        ..Default::default()
    };
    let permit = authorise(&user(), &directory, &get).unwrap();
    assert_eq!(
        (permit.path(), permit.subject()),
        (Some(GET), Some(PROJECT))
    );
    assert_eq!(
        permit.actor(),
        &Actor::User {
            user: "ann".into(),
            token: "t".into()
        }
    );
    let update = IpServiceUpdateRequest {
        project: PROJECT.to_owned(),
        ..Default::default()
    };
    let denied = authorise(&user(), &directory, &update).unwrap_err();
    assert_eq!(
        denied.to_string(),
        format!("{UPDATE} is not allowed: needs a project role of owner or editor")
    );
    let error = proto_errors::Error::from(denied);
    assert_eq!(error.code, proto_errors::ErrorCode::PermissionDenied);
    let system = Permit::system(SystemActor::Gateway);
    assert_eq!(system.actor(), &Actor::System(SystemActor::Gateway));
}

#[test]
fn nobody_grants_more_than_it_has() {
    use ProjectRole::{Editor, Owner, Viewer};
    let on = |project: &str, role| TokenRights {
        project_roles: [(project.to_owned(), role)].into(),
        ..TokenRights::default()
    };
    let admin = |role| TokenRights {
        admin_role: Some(role),
        ..TokenRights::default()
    };
    let editor = || memberships(&[], &[(PROJECT, Editor)]);
    let provider = |role| memberships(&[("provider", role)], &[]);
    let infra = TokenRights {
        infra_role: Some(InfraRole::Editor),
        ..TokenRights::default()
    };
    let cases = [
        ("own role", user(), editor(), on(PROJECT, Editor), true),
        ("weaker role", user(), editor(), on(PROJECT, Viewer), true),
        ("stronger role", user(), editor(), on(PROJECT, Owner), false),
        ("foreign project", user(), editor(), on("p2", Viewer), false),
        ("all of one's own", user(), editor(), on("*", Owner), true),
        (
            "listed call",
            user(),
            editor(),
            listing(PROJECT, &[UPDATE]),
            true,
        ),
        (
            "listed call, foreign",
            user(),
            editor(),
            listing("p2", &[UPDATE]),
            false,
        ),
        (
            "own method",
            user(),
            editor(),
            listing("*", &[IMAGES]),
            true,
        ),
        (
            "agents' call",
            user(),
            editor(),
            listing("*", &[WAIT]),
            false,
        ),
        ("admin", user(), editor(), admin(AdminRole::Viewer), false),
        ("infra", user(), editor(), infra.clone(), false),
        (
            "token within token",
            api(star(Viewer)),
            editor(),
            on(PROJECT, Viewer),
            true,
        ),
        (
            "token over token",
            api(star(Viewer)),
            editor(),
            on(PROJECT, Editor),
            false,
        ),
        (
            "star within star",
            api(star(Viewer)),
            editor(),
            listing("*", &[GET]),
            true,
        ),
        (
            "star over one",
            api(on(PROJECT, Editor)),
            editor(),
            on("*", Viewer),
            false,
        ),
        (
            "listed over star",
            api(star(Viewer)),
            editor(),
            listing("*", &[UPDATE]),
            false,
        ),
        (
            "provider owner",
            user(),
            provider(TenantRole::Owner),
            admin(AdminRole::Editor),
            true,
        ),
        (
            "provider editor",
            user(),
            provider(TenantRole::Editor),
            admin(AdminRole::Editor),
            false,
        ),
        (
            "provider viewer",
            user(),
            provider(TenantRole::Viewer),
            admin(AdminRole::Viewer),
            true,
        ),
        (
            "provider guest",
            user(),
            provider(TenantRole::Guest),
            admin(AdminRole::Viewer),
            false,
        ),
        (
            "admin editor",
            api(admin(AdminRole::Editor)),
            editor(),
            infra.clone(),
            true,
        ),
        (
            "admin viewer",
            api(admin(AdminRole::Viewer)),
            editor(),
            infra,
            false,
        ),
    ];
    for (name, who, directory, wanted, expected) in cases {
        let got = may_grant(&who, &directory, &wanted);
        assert_eq!(got.is_ok(), expected, "{name}: {got:?}");
    }
    let anonymous = control_authz::Principal::anonymous();
    assert!(may_grant(&anonymous, &editor(), &on(PROJECT, Viewer)).is_err());
    assert!(may_grant(&anonymous, &editor(), &on("*", Viewer)).is_err());
}

/// Not a promise, a look: `cargo test -p control-authz --release -- --ignored --nocapture speed`.
#[test]
#[ignore = "measures"]
fn speed() {
    const ROUNDS: u32 = 1_000_000;
    let directory = memberships(&[(TENANT, TenantRole::Owner)], &[]);
    let who = api(star(ProjectRole::Owner));
    let get = IpServiceGetRequest {
        project: PROJECT.to_owned(),
        ..Default::default()
    };
    let start = std::time::Instant::now();
    for _ in 0..ROUNDS {
        std::hint::black_box(authorise(&who, &directory, std::hint::black_box(&get))).unwrap();
    }
    println!("{:?} per decision", start.elapsed() / ROUNDS);
}
