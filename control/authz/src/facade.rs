//! Calls of other APIs, which facades serve beside the contract.
//!
//! A facade has its own table of methods and its own policy. This module has the part of the
//! decision that is the same for all of them: the role that counts, and the permit.

use proto_public::api::v2::ProjectRole;

use crate::permissions::ALL;
use crate::roles::{at_least, project_role};
use crate::{Denied, Directory, FacadeMethod, Permit, Principal, PrincipalKind};

/// The permit of a call that the facade's own policy permits. The store decides which commands it
/// covers, by the method.
///
/// # Errors
/// [`Denied::Unauthenticated`] without a token: no facade permits strangers anything that writes.
pub fn permit_facade(
    method: &'static FacadeMethod,
    who: &Principal,
    subject: Option<&str>,
) -> Result<Permit, Denied> {
    if who.kind == PrincipalKind::Anonymous {
        return Err(Denied::Unauthenticated);
    }
    Ok(Permit::of_facade(method, who, subject))
}

/// The role of a caller in a project that counts for facades: of an API token the weaker of its own
/// role and its user's. `None` means that the caller does not see the project. The token of a
/// component has none: it may call the methods that it lists, and no facade's.
pub fn granted_role(
    who: &Principal,
    directory: &dyn Directory,
    project: &str,
) -> Option<ProjectRole> {
    let now = project_role(directory, &who.user, project)?;
    match who.kind {
        PrincipalKind::Anonymous => None,
        PrincipalKind::User => Some(now),
        PrincipalKind::Api => {
            let roles = &who.rights.project_roles;
            let token = roles.get(project).or_else(|| roles.get(ALL)).copied()?;
            Some(if at_least(now, token) { token } else { now })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memberships;

    static UPDATE: FacadeMethod = FacadeMethod {
        path: "/openstack.baremetal.v1.Nodes/Update",
        audited: true,
    };

    fn directory(role: ProjectRole) -> Memberships {
        Memberships {
            projects: [("p".to_owned(), role)].into(),
            project_tenants: [("p".to_owned(), "t".to_owned())].into(),
            ..Memberships::default()
        }
    }

    fn caller(kind: PrincipalKind, token: Option<ProjectRole>) -> Principal {
        let mut who = Principal {
            user: "ada".into(),
            kind,
            ..Principal::default()
        };
        if let Some(role) = token {
            who.rights.project_roles.insert("p".to_owned(), role);
        }
        who
    }

    #[test]
    fn the_weaker_of_token_and_user_counts() {
        use ProjectRole::{Editor, Owner, Viewer};
        let api = PrincipalKind::Api;
        for (kind, token, user, expected) in [
            (api, Some(Owner), Owner, Some(Owner)),
            (api, Some(Owner), Viewer, Some(Viewer)),
            (api, Some(Viewer), Owner, Some(Viewer)),
            (api, None, Owner, None),
            (PrincipalKind::User, None, Editor, Some(Editor)),
            (PrincipalKind::Anonymous, Some(Owner), Owner, None),
        ] {
            let found = granted_role(&caller(kind, token), &directory(user), "p");
            assert_eq!(found, expected, "{kind:?} {token:?} {user:?}");
        }
        let who = caller(api, Some(Owner));
        assert_eq!(granted_role(&who, &directory(Owner), "other"), None);
    }

    #[test]
    fn a_permit_names_the_method_and_needs_a_token() {
        let who = caller(PrincipalKind::Api, None);
        let permit = permit_facade(&UPDATE, &who, Some("p")).unwrap();
        assert_eq!(permit.path(), Some(UPDATE.path));
        assert_eq!(permit.subject(), Some("p"));
        assert!(permit.audited());
        let stranger = Principal::anonymous();
        assert_eq!(
            permit_facade(&UPDATE, &stranger, None).unwrap_err(),
            Denied::Unauthenticated
        );
    }
}
