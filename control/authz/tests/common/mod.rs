//! Tenant `acme` with project `p1`, tenant `globex` with `p2`, and who calls.

use control_authz::{Memberships, Principal, PrincipalKind, TokenRights};
use proto_public::api::v2::{ProjectRole, TenantRole};

pub(crate) const TENANT: &str = "acme";
pub(crate) const PROJECT: &str = "p1";
pub(crate) const MACHINE: &str = "m1";

pub(crate) fn memberships(
    tenants: &[(&str, TenantRole)],
    projects: &[(&str, ProjectRole)],
) -> Memberships {
    Memberships {
        tenants: tenants.iter().map(|(t, r)| ((*t).to_owned(), *r)).collect(),
        projects: projects
            .iter()
            .map(|(p, r)| ((*p).to_owned(), *r))
            .collect(),
        project_tenants: [(PROJECT, TENANT), ("p2", "globex")]
            .map(|(p, t)| (p.to_owned(), t.to_owned()))
            .into(),
        provider: "provider".to_owned(),
    }
}

pub(crate) fn user() -> Principal {
    Principal {
        user: "ann".into(),
        token: "t".into(),
        kind: PrincipalKind::User,
        ..Principal::default()
    }
}

pub(crate) fn api(rights: TokenRights) -> Principal {
    Principal {
        kind: PrincipalKind::Api,
        rights,
        ..user()
    }
}
