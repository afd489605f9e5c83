//! Permits for what a test seeds.
//!
//! A write needs a permit that covers it, in a test too. A test that is not about rights takes the
//! permit that the product itself would have: that of the part of the system which makes such
//! changes, or else that of an administrator who calls a method which does.

use control_authz::{
    Directory, FacadeMethod, InProject, Permit, Principal, PrincipalKind, TokenRights,
    authorise_method, permit_facade,
};
use control_store::coverers;
use proto_public::api::v2::{AdminRole, TenantRole};

/// A directory in which everybody is an owner of the provider's tenant.
#[derive(Debug)]
struct Administrators;

impl Directory for Administrators {
    fn tenant_role(&self, _user: &str, _tenant: &str) -> Option<TenantRole> {
        Some(TenantRole::Owner)
    }

    fn project(&self, _user: &str, _project: &str) -> Option<InProject<'_>> {
        None
    }

    fn is_guest(&self, _user: &str, _tenant: &str) -> bool {
        false
    }

    fn provider_role(&self, _user: &str) -> Option<TenantRole> {
        Some(TenantRole::Owner)
    }
}

/// A permit that covers the operation of that name.
///
/// # Panics
/// No part of the system makes such changes, and no method that an administrator may call.
#[must_use]
pub fn permit_for(operation: &str) -> Permit {
    let (methods, actors) = coverers(operation);
    if let Some(actor) = actors.first() {
        return Permit::system(*actor);
    }
    let who = Principal {
        user: "admin".into(),
        token: "00000000-0000-4000-8000-000000000000".into(),
        kind: PrincipalKind::Api,
        rights: TokenRights {
            admin_role: Some(AdminRole::Editor),
            ..TokenRights::default()
        },
    };
    let mut permits = methods.iter().filter_map(|name| {
        let path = format!("/{name}");
        let Some(method) = proto_public::method(&path) else {
            return facade_permit(path, &who);
        };
        let subject = method.scope.subject_field().map(|_| "anything");
        authorise_method(method, &who, &Administrators, subject).ok()
    });
    permits
        .next()
        .unwrap_or_else(|| panic!("an administrator may not {operation}"))
}

/// A permit of a facade's method. Methods live as long as the program, so the test's does too.
fn facade_permit(path: String, who: &Principal) -> Option<Permit> {
    let method = Box::leak(Box::new(FacadeMethod {
        path: Box::leak(path.into_boxed_str()),
        audited: false,
    }));
    permit_facade(method, who, None).ok()
}
