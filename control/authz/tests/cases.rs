//! The cases that a table of methods does not show: stars, lists, lost and weakened memberships.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]
#![allow(clippy::print_stdout, reason = "says what was compared")]
mod common;

use common::{MACHINE, PROJECT, TENANT, api, memberships, user};
use control_authz::{Actor, Denied, Memberships, Permissions, Permit, SystemActor, TokenRights};
use control_authz::{authorise, authorise_path};
use proto_public::api::v2::{AdminRole, MachineRole, ProjectRole, TenantRole};
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

/// A name, the token's rights, what its user is a member of, the method, and the outcome.
type Case = (
    &'static str,
    TokenRights,
    Memberships,
    &'static str,
    &'static str,
);

fn check<const N: usize>(cases: [Case; N]) {
    for (name, rights, directory, path, expected) in cases {
        let got = authorise_path(path, &api(rights), &directory, Some(PROJECT));
        assert_eq!(found(&got), expected, "{name}: {got:?}");
    }
}

fn member(role: ProjectRole) -> Memberships {
    memberships(&[], &[(PROJECT, role)])
}

fn no_member() -> Memberships {
    memberships(&[], &[])
}

#[test]
fn roles_of_tokens_against_memberships() {
    use ProjectRole::{Editor, Owner, Viewer};
    let tenant = |role| memberships(&[(TENANT, role)], &[]);
    check([
        (
            "star reaches where the user is member",
            star(Editor),
            member(Editor),
            UPDATE,
            "yes",
        ),
        (
            "star does not reach further",
            star(Owner),
            no_member(),
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
            member(Owner),
            LEAVE,
            "403",
        ),
        ("roles are exact", star(Viewer), member(Owner), LEAVE, "yes"),
        (
            "a weaker user weakens its token",
            star(Owner),
            member(Viewer),
            UPDATE,
            "403",
        ),
        (
            "but may still read",
            star(Owner),
            member(Viewer),
            GET,
            "yes",
        ),
        ("a weaker token", star(Viewer), member(Owner), UPDATE, "403"),
    ]);
}

#[test]
fn lists_of_tokens_against_memberships() {
    use ProjectRole::{Editor, Owner, Viewer};
    check([
        (
            "listed for the project",
            listing(PROJECT, &[UPDATE]),
            member(Editor),
            UPDATE,
            "yes",
        ),
        (
            "listed, another method",
            listing(PROJECT, &[GET]),
            member(Editor),
            UPDATE,
            "403",
        ),
        (
            "listed, user too weak",
            listing(PROJECT, &[UPDATE]),
            member(Viewer),
            UPDATE,
            "403",
        ),
        (
            "listed, membership lost",
            listing(PROJECT, &[UPDATE]),
            no_member(),
            UPDATE,
            "404",
        ),
        (
            "listed for all",
            listing("*", &[UPDATE]),
            member(Editor),
            UPDATE,
            "yes",
        ),
        (
            "token of another project",
            listing("p2", &[UPDATE]),
            member(Editor),
            UPDATE,
            "404",
        ),
        (
            "own methods need listing",
            star(Owner),
            member(Owner),
            IMAGES,
            "403",
        ),
        (
            "own methods, listed",
            listing("*", &[IMAGES]),
            no_member(),
            IMAGES,
            "yes",
        ),
        (
            "public ones do not",
            star(Owner),
            no_member(),
            VERSION,
            "yes",
        ),
        (
            "unknown method",
            star(Owner),
            member(Owner),
            "/x.Y/Z",
            "501",
        ),
    ]);
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
