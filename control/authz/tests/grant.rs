//! A token never hands on more than it has: the narrower entry counts when granting too.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]
mod common;

use std::collections::BTreeMap;

use common::{MACHINE, PROJECT, TENANT, api, memberships, user};
use control_authz::{
    Memberships, Permissions, Principal, PrincipalKind, TokenRights, authorise_method, may_grant,
    platform_role,
};
use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, methods};

const UPDATE: &str = "/metalstack.api.v2.ProjectService/Update";
const IMAGES: &str = "/metalstack.api.v2.ImageService/List";
const IP_GET: &str = "/metalstack.api.v2.IPService/Get";
const IP_UPDATE: &str = "/metalstack.api.v2.IPService/Update";
const WAIT: &str = "/metalstack.infra.v2.BootService/Wait";
const TENANT_UPDATE: &str = "/metalstack.api.v2.TenantService/Update";
const REVOKE: &str = "/metalstack.api.v2.TokenService/Revoke";

fn listing(subject: &str, path: &str) -> TokenRights {
    let mut permissions = Permissions::default();
    assert!(permissions.add(subject, path), "{path}");
    TokenRights {
        permissions,
        ..TokenRights::default()
    }
}

fn roles<R: Copy>(entries: &[(&str, R)]) -> BTreeMap<String, R> {
    let owned = entries
        .iter()
        .map(|(subject, role)| ((*subject).to_owned(), *role));
    owned.collect()
}

fn projects(entries: &[(&str, ProjectRole)]) -> TokenRights {
    TokenRights {
        project_roles: roles(entries),
        ..TokenRights::default()
    }
}

fn tenants(entries: &[(&str, TenantRole)]) -> TokenRights {
    TokenRights {
        tenant_roles: roles(entries),
        ..TokenRights::default()
    }
}

fn machines(entries: &[(&str, MachineRole)]) -> TokenRights {
    TokenRights {
        machine_roles: roles(entries),
        ..TokenRights::default()
    }
}

fn admin(role: AdminRole) -> TokenRights {
    TokenRights {
        admin_role: Some(role),
        ..TokenRights::default()
    }
}

fn infra() -> TokenRights {
    TokenRights {
        infra_role: Some(InfraRole::Editor),
        ..TokenRights::default()
    }
}

#[test]
fn a_user_grants_no_more_than_it_has() {
    use ProjectRole::{Editor, Owner, Viewer};
    let editor = memberships(&[], &[(PROJECT, Editor)]);
    for (name, wanted, expected) in [
        ("own role", projects(&[(PROJECT, Editor)]), true),
        ("weaker role", projects(&[(PROJECT, Viewer)]), true),
        ("stronger role", projects(&[(PROJECT, Owner)]), false),
        ("foreign project", projects(&[("p2", Viewer)]), false),
        ("all of one's own", projects(&[("*", Owner)]), true),
        ("listed call", listing(PROJECT, IP_UPDATE), true),
        ("listed call, foreign", listing("p2", IP_UPDATE), false),
        ("own method", listing("*", IMAGES), true),
        ("agents' call", listing("*", WAIT), false),
        ("admin", admin(AdminRole::Viewer), false),
        ("infra", infra(), false),
    ] {
        let got = may_grant(&user(), &editor, &wanted);
        assert_eq!(got.is_ok(), expected, "{name}: {got:?}");
    }
    for (role, wanted, expected) in [
        (TenantRole::Owner, AdminRole::Editor, true),
        (TenantRole::Editor, AdminRole::Editor, false),
        (TenantRole::Viewer, AdminRole::Viewer, true),
        (TenantRole::Guest, AdminRole::Viewer, false),
    ] {
        let provider = memberships(&[("provider", role)], &[]);
        let got = may_grant(&user(), &provider, &admin(wanted));
        assert_eq!(got.is_ok(), expected, "provider's {role:?}: {got:?}");
    }
    let anonymous = Principal::anonymous();
    for wanted in [PROJECT, "*"].map(|project| projects(&[(project, Viewer)])) {
        assert!(may_grant(&anonymous, &editor, &wanted).is_err());
    }
}

#[test]
fn a_token_grants_no_more_than_it_has() {
    use ProjectRole::{Editor, Viewer};
    let editor = memberships(&[], &[(PROJECT, Editor)]);
    let star = || projects(&[("*", Viewer)]);
    let one = |role| projects(&[(PROJECT, role)]);
    for (name, parent, wanted, expected) in [
        ("token within token", star(), one(Viewer), true),
        ("token over token", star(), one(Editor), false),
        ("star within star", star(), listing("*", IP_GET), true),
        ("star over one", one(Editor), star(), false),
        ("listed over star", star(), listing("*", IP_UPDATE), false),
        ("admin editor", admin(AdminRole::Editor), infra(), true),
        ("admin viewer", admin(AdminRole::Viewer), infra(), false),
    ] {
        let got = may_grant(&api(parent), &editor, &wanted);
        assert_eq!(got.is_ok(), expected, "{name}: {got:?}");
    }
}

#[test]
fn a_narrower_entry_is_not_left_out_of_a_new_token() {
    use ProjectRole::{Editor, Viewer};
    let owner = memberships(
        &[(TENANT, TenantRole::Owner), ("globex", TenantRole::Owner)],
        &[],
    );
    let may = |parent: &TokenRights, wanted: TokenRights| {
        may_grant(&api(parent.clone()), &owner, &wanted).is_ok()
    };
    let parent = projects(&[("*", Editor), (PROJECT, Viewer)]);
    assert!(!may(&parent, projects(&[("*", Editor)])));
    assert!(!may(&parent, projects(&[("*", Editor), (PROJECT, Editor)])));
    assert!(!may(&parent, listing("*", UPDATE)));
    assert!(!may(&parent, listing(PROJECT, UPDATE)));
    assert!(may(&parent, parent.clone()));
    assert!(may(&parent, projects(&[("*", Viewer)])));
    assert!(may(&parent, projects(&[("p2", Editor)])));
    assert!(may(&parent, listing("p2", UPDATE)));

    let parent = tenants(&[("*", TenantRole::Editor), (TENANT, TenantRole::Viewer)]);
    assert!(!may(&parent, tenants(&[("*", TenantRole::Editor)])));
    assert!(!may(&parent, listing("*", TENANT_UPDATE)));
    assert!(may(&parent, parent.clone()));

    let parent = machines(&[("*", MachineRole::Editor), (MACHINE, MachineRole::Viewer)]);
    assert!(!may(&parent, machines(&[("*", MachineRole::Editor)])));
    assert!(!may(&parent, listing("*", WAIT)));
    assert!(may(&parent, parent.clone()));

    // What a token lists for a subject that such a call never names, it cannot call itself.
    assert!(!may(&listing(PROJECT, REVOKE), listing("*", REVOKE)));
    assert!(may(&listing(PROJECT, REVOKE), listing(PROJECT, REVOKE)));
}

/// Splitmix64: the seed is all that a failure needs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn maybe<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let rolled = self.below(all.len() * 2);
        all.get(rolled).copied()
    }

    fn entries<R: Copy>(&mut self, subjects: &[&str], all: &[R]) -> BTreeMap<String, R> {
        let mut entries = BTreeMap::new();
        for subject in subjects {
            if let Some(role) = self.maybe(all) {
                entries.insert((*subject).to_owned(), role);
            }
        }
        entries
    }

    fn rights(&mut self) -> TokenRights {
        let mut permissions = Permissions::default();
        for _ in 0..self.below(4) {
            let subject = self.of(&["*", PROJECT, "p2", TENANT, MACHINE]);
            let path = &methods()[self.below(methods().len())].path;
            assert!(permissions.add(subject, path));
        }
        TokenRights {
            permissions,
            project_roles: self.entries(&["*", PROJECT, "p2"], &PROJECT_ROLES),
            tenant_roles: self.entries(&["*", TENANT, "globex"], &TENANT_ROLES),
            machine_roles: self.entries(&["*", MACHINE, "m2"], &MACHINE_ROLES),
            admin_role: self
                .maybe(&[AdminRole::Viewer])
                .filter(|_| self.below(4) == 0),
            infra_role: self.maybe(&[InfraRole::Editor, InfraRole::Viewer]),
            component: None,
        }
    }

    fn memberships(&mut self) -> Memberships {
        let tenants: Vec<_> = [TENANT, "globex", "provider"]
            .into_iter()
            .filter_map(|tenant| Some((tenant, self.maybe(&TENANT_ROLES)?)))
            .collect();
        let projects: Vec<_> = [PROJECT, "p2"]
            .into_iter()
            .filter_map(|project| Some((project, self.maybe(&PROJECT_ROLES)?)))
            .collect();
        memberships(&tenants, &projects)
    }
}

const PROJECT_ROLES: [ProjectRole; 3] =
    [ProjectRole::Owner, ProjectRole::Editor, ProjectRole::Viewer];
const TENANT_ROLES: [TenantRole; 4] = [
    TenantRole::Owner,
    TenantRole::Editor,
    TenantRole::Viewer,
    TenantRole::Guest,
];
const MACHINE_ROLES: [MachineRole; 2] = [MachineRole::Editor, MachineRole::Viewer];

/// Whoever has a role has the weaker ones too: a method that lists viewers alone is open to an
/// owner by a token with a viewer's role. So what a parent reaches is what it reaches with its own
/// roles, or with each of them lowered.
fn reached(parent: &Principal, directory: &Memberships) -> Vec<Principal> {
    let own = |rights: TokenRights| Principal {
        kind: PrincipalKind::Api,
        rights,
        ..parent.clone()
    };
    let rights = match parent.kind {
        PrincipalKind::Api => parent.rights.clone(),
        // As far as its user reaches.
        _ => TokenRights {
            project_roles: roles(&[("*", ProjectRole::Owner)]),
            tenant_roles: roles(&[("*", TenantRole::Owner)]),
            admin_role: platform_role(directory, &parent.user),
            ..TokenRights::default()
        },
    };
    let mut all = vec![parent.clone(), own(rights.clone())];
    for (project, tenant) in [
        (ProjectRole::Editor, TenantRole::Editor),
        (ProjectRole::Viewer, TenantRole::Viewer),
        (ProjectRole::Viewer, TenantRole::Guest),
    ] {
        let mut lower = rights.clone();
        for role in lower.project_roles.values_mut() {
            *role = *[*role, project].iter().max().unwrap();
        }
        for role in lower.tenant_roles.values_mut() {
            *role = *[*role, tenant].iter().max().unwrap();
        }
        for role in lower.machine_roles.values_mut() {
            *role = MachineRole::Viewer;
        }
        lower.infra_role = lower.infra_role.map(|_| InfraRole::Viewer);
        all.push(own(lower));
    }
    all
}

fn subjects(method: &Method) -> &'static [Option<&'static str>] {
    match method.scope.subject_field() {
        Some("project") => &[Some(PROJECT), Some("p2"), Some("p3")],
        Some("login") => &[Some(TENANT), Some("globex"), Some("initech")],
        Some("uuid") => &[Some(MACHINE), Some("m2"), Some("m3")],
        _ => &[None],
    }
}

#[test]
fn a_child_token_is_never_wider_than_its_parent() {
    let mut dice = Dice(20_261_123);
    let (mut granted, mut compared) = (0, 0);
    for round in 0..6_000 {
        let directory = dice.memberships();
        let parent = match dice.below(6) {
            0 => user(),
            _ => api(dice.rights()),
        };
        // A child that resembles its parent is granted more often.
        let mut wanted = dice.rights();
        if dice.below(2) == 0 {
            wanted.machine_roles = parent.rights.machine_roles.clone();
            wanted.infra_role = parent.rights.infra_role;
            wanted.admin_role = None;
            wanted.permissions = parent.rights.permissions.clone();
        }
        if dice.below(3) == 0 {
            wanted.machine_roles.remove(dice.of(&["*", MACHINE, "m2"]));
            wanted.infra_role = None;
            wanted.admin_role = None;
            wanted.permissions = Permissions::default();
        }
        if dice.below(3) == 0 {
            wanted.tenant_roles = parent.rights.tenant_roles.clone();
            wanted
                .tenant_roles
                .remove(dice.of(&["*", TENANT, "globex"]));
        }
        if may_grant(&parent, &directory, &wanted).is_err() {
            continue;
        }
        granted += 1;
        let child = api(wanted);
        let reached = reached(&parent, &directory);
        for method in methods() {
            for subject in subjects(method) {
                let may =
                    |who: &Principal| authorise_method(method, who, &directory, *subject).is_ok();
                if may(&child) {
                    compared += 1;
                    assert!(
                        reached.iter().any(may),
                        "round {round}: {} on {subject:?}: {parent:#?} granted {child:#?}",
                        method.path
                    );
                }
            }
        }
    }
    assert!(granted > 300 && compared > 10_000, "{granted} {compared}");
}
