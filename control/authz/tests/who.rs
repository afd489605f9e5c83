//! Every method against every sort of caller, compared with `who.txt`, which people can read.
//! After a change of the contract: `WHO_WRITE=1 cargo test -p control-authz --test who`, and read
//! the difference as what it is, a change of who may do what.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]
#![allow(clippy::print_stdout, reason = "says what was compared")]
mod common;

use std::fmt::Write;
use std::path::Path;

use common::{MACHINE, PROJECT, TENANT, api, memberships, user};
use control_authz::{
    ComponentProfile, Denied, Memberships, Principal, TokenRights, authorise_path,
};
use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, Scope, methods};

type Caller = (&'static str, Principal, Memberships);

fn callers() -> Vec<Caller> {
    let member = |role| memberships(&[(TENANT, role)], &[]);
    let rights = TokenRights::default;
    let strangers = || {
        memberships(
            &[("globex", TenantRole::Owner)],
            &[("p2", ProjectRole::Owner)],
        )
    };
    vec![
        ("nobody", Principal::anonymous(), strangers()),
        ("other", user(), strangers()),
        ("guest", user(), member(TenantRole::Guest)),
        ("viewer", user(), member(TenantRole::Viewer)),
        ("editor", user(), member(TenantRole::Editor)),
        ("owner", user(), member(TenantRole::Owner)),
        (
            "token",
            api(TokenRights {
                project_roles: [(PROJECT.to_owned(), ProjectRole::Owner)].into(),
                tenant_roles: [(TENANT.to_owned(), TenantRole::Owner)].into(),
                ..rights()
            }),
            member(TenantRole::Owner),
        ),
        (
            "admin-v",
            api(TokenRights {
                admin_role: Some(AdminRole::Viewer),
                ..rights()
            }),
            strangers(),
        ),
        (
            "admin-e",
            api(TokenRights {
                admin_role: Some(AdminRole::Editor),
                ..rights()
            }),
            strangers(),
        ),
        (
            "infra",
            api(TokenRights {
                infra_role: Some(InfraRole::Editor),
                ..rights()
            }),
            strangers(),
        ),
        (
            "machine",
            api(TokenRights {
                machine_roles: [(MACHINE.to_owned(), MachineRole::Editor)].into(),
                ..rights()
            }),
            strangers(),
        ),
        (
            "component",
            Principal {
                user: "component/gardener/shoot".into(),
                ..api(ComponentProfile::Gardener.rights(PROJECT))
            },
            strangers(),
        ),
    ]
}

fn subject(method: &Method) -> Option<&'static str> {
    match method.scope {
        Scope::Tenant(_) => Some(TENANT),
        Scope::Project(_) => Some(PROJECT),
        Scope::Machine(_) => Some(MACHINE),
        _ => None,
    }
}

fn answer(method: &Method, (_, who, directory): &Caller) -> &'static str {
    match authorise_path(&method.path, who, directory, subject(method)) {
        Ok(permit) => {
            assert_eq!(permit.path(), Some(method.path.as_str()));
            assert_eq!(permit.audited(), method.audited);
            "yes"
        }
        Err(Denied::Unauthenticated | Denied::Forbidden { .. }) => "403",
        Err(Denied::NotFound { .. }) => "404",
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_method_as_every_caller() {
    let callers = callers();
    let mut table = String::new();
    let width = methods().iter().map(|m| m.path.len()).max().unwrap();
    write!(table, "{:width$}", "# method").unwrap();
    for (name, ..) in &callers {
        write!(table, " {name:>7}").unwrap();
    }
    table.push('\n');
    for method in methods() {
        write!(table, "{:width$}", method.path).unwrap();
        for caller in &callers {
            write!(table, " {:>7}", answer(method, caller)).unwrap();
        }
        table.push('\n');
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/who.txt");
    if std::env::var_os("WHO_WRITE").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    let different: Vec<_> = expected
        .lines()
        .zip(table.lines())
        .filter(|(old, new)| old != new)
        .map(|(old, new)| format!("- {old}\n+ {new}"))
        .collect();
    assert!(
        different.is_empty(),
        "who may do what has changed:\n{}",
        different.join("\n")
    );
    assert_eq!(expected.lines().count(), table.lines().count());
    println!(
        "{} methods x {} callers as in who.txt",
        methods().len(),
        callers.len()
    );
}

/// The same table by rule instead of by listing: what holds for every method of a kind.
#[test]
fn every_kind_keeps_its_rule() {
    for caller in callers() {
        for method in methods() {
            let got = answer(method, &caller);
            let expected = rule(method, caller.0);
            assert_eq!(got, expected, "{} as {}", method.path, caller.0);
        }
    }
}

fn rule(method: &Method, caller: &str) -> &'static str {
    let when = |yes: bool| if yes { "yes" } else { "403" };
    if method.scope == Scope::Public || caller == "admin-e" {
        return "yes";
    }
    if caller == "nobody" {
        return "403";
    }
    if caller == "admin-v" {
        return when(match &method.scope {
            Scope::Public | Scope::Own => true,
            Scope::Tenant(r) => r.contains(&TenantRole::Viewer),
            Scope::Project(r) => r.contains(&ProjectRole::Viewer),
            Scope::Machine(r) => r.contains(&MachineRole::Viewer),
            Scope::Admin(r) => r.contains(&AdminRole::Viewer),
            Scope::Infra(r) => r.contains(&InfraRole::Viewer),
        });
    }
    if caller == "component" {
        let kind = ComponentProfile::Gardener;
        let mut listed = kind.methods().chain(kind.catalog());
        return match &method.scope {
            Scope::Tenant(_) => "404",
            _ => when(listed.any(|path| path == method.path)),
        };
    }
    let tenant = match caller {
        "guest" => Some(TenantRole::Guest),
        "viewer" => Some(TenantRole::Viewer),
        "editor" => Some(TenantRole::Editor),
        "owner" | "token" => Some(TenantRole::Owner),
        _ => None,
    };
    match &method.scope {
        Scope::Public => "yes",
        Scope::Own => when(["other", "guest", "viewer", "editor", "owner"].contains(&caller)),
        Scope::Tenant(r) => tenant.map_or("404", |t| when(r.contains(&t))),
        Scope::Project(r) => match tenant {
            None | Some(TenantRole::Guest) => "404",
            Some(t) => when(r.iter().any(|p| *p as i32 == t as i32)),
        },
        Scope::Machine(r) => when(caller == "machine" && r.contains(&MachineRole::Editor)),
        Scope::Infra(r) => when(caller == "infra" && r.contains(&InfraRole::Editor)),
        Scope::Admin(_) => "403",
    }
}
