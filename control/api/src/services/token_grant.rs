//! Handing rights on to a new token: what the caller may give, and on whose standing it rests.

use std::collections::BTreeSet;

use control_authz::{Elevation, Rights, may_grant, platform_role};
use control_state::{ErrorCode, Tables, Token, Warrant};
use proto_types::TokenId;
use tonic::Status;

use super::Services;
use crate::caller::Caller;
use crate::convert::token::{WantedRights, standing};
use crate::directory::StateDirectory;
use crate::refusal::refused;

impl Services {
    /// Nobody gives away more than what the token that asks for it has.
    ///
    /// # Errors
    /// `permission_denied`, naming the right.
    pub(super) async fn check_grant(&self, caller: &Caller, rights: &Rights) -> Result<(), Status> {
        let provider = &self.0.provider;
        self.0
            .read(caller, |tables| {
                let directory = StateDirectory { tables, provider };
                Ok(may_grant(&caller.principal, &directory, rights))
            })
            .await?
            .map_err(|elevation| too_much(&elevation))
    }

    /// Lets the caller hand rights on to a token of `user`: the standing on which they will rest.
    ///
    /// # Errors
    /// `permission_denied` for more than the caller's own token has now, or than would count.
    pub(super) async fn grant(
        &self,
        caller: &Caller,
        user: &str,
        wanted: &WantedRights,
    ) -> Result<Option<Warrant>, Status> {
        let rights = wanted.rights();
        self.check_grant(caller, &rights).await?;
        self.warrant(caller, user, &rights).await
    }

    /// The standing on which the rights rest that the caller hands on: those over the platform,
    /// and all that another user gets.
    ///
    /// # Errors
    /// `permission_denied` for rights that this standing would not let count.
    pub(super) async fn warrant(
        &self,
        caller: &Caller,
        user: &str,
        rights: &Rights,
    ) -> Result<Option<Warrant>, Status> {
        let provider = &self.0.provider;
        let found = self.0.read(caller, |tables| {
            let directory = StateDirectory { tables, provider };
            let warrant = handed_on(tables, &directory, caller, user);
            let standing = standing(warrant.as_ref(), user, &directory);
            let counts = rights.clone().with_standing(standing) == *rights;
            Ok((warrant, counts))
        });
        match found.await? {
            (warrant, true) => Ok(warrant),
            (_, false) => {
                let message = format!(
                    "these admin, infra or machine rights exceed the role of \"{user}\" in the \
                     provider's tenant"
                );
                Err(refused(ErrorCode::PermissionDenied, message))
            }
        }
    }
}

/// What the caller's own token rests on, and the user's membership if there is one. Without the
/// first, a token that somebody made for another user would outlive its maker's membership.
fn handed_on(
    tables: &Tables,
    directory: &StateDirectory<'_>,
    caller: &Caller,
    user: &str,
) -> Option<Warrant> {
    let is_member = |login: &str| platform_role(directory, login).is_some();
    let id: Option<TokenId> = caller.principal.token.parse().ok();
    let own = id.and_then(|id| tables.get::<Token>(&id));
    let mut logins = match own.and_then(|token| token.warrant.as_ref()) {
        Some(Warrant::Members(logins)) => logins.clone(),
        // An operator who is a member as well does not need more than that.
        Some(Warrant::Operator) if !is_member(&caller.user) => BTreeSet::new(),
        Some(Warrant::Operator) | None => BTreeSet::from([caller.user.clone()]),
    };
    if is_member(user) {
        logins.insert(user.to_owned());
    }
    if logins.is_empty() {
        return Some(Warrant::Operator);
    }
    let is_own = logins.len() == 1 && logins.contains(user);
    (!is_own).then_some(Warrant::Members(logins))
}

/// What a token rests on whose rights over the platform are changed: on everybody on whom the old
/// ones and the new ones rest. `None` if that is what it rests on already: an update with the same
/// content changes nothing.
pub(super) fn merged(token: &Token, new: Option<Warrant>) -> Option<Warrant> {
    let logins = |warrant: Option<Warrant>| match warrant {
        Some(Warrant::Members(logins)) => logins,
        Some(Warrant::Operator) => BTreeSet::new(),
        None => BTreeSet::from([token.user.clone()]),
    };
    let old = logins(token.warrant.clone());
    let mut all = old.clone();
    all.extend(logins(new));
    if all == old {
        return None;
    }
    Some(Warrant::Members(all))
}

fn too_much(elevation: &Elevation) -> Status {
    refused(ErrorCode::PermissionDenied, elevation.to_string())
}
