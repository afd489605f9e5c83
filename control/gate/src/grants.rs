//! Delegates rights to a new token: checks what the caller may grant, and records the warrant.

use std::collections::BTreeSet;
use std::sync::Arc;

use control_authz::{Elevation, TokenRights, may_grant, platform_role};
use control_state::{CreateToken, ErrorCode, Labels, Op, Tables, Token, TokenType, Warrant};
use proto_types::TokenId;
use tonic::Status;
use uuid::Uuid;

use crate::caller::{Caller, PARTITION_LABEL};
use crate::context::ServiceContext;
use crate::directory::StateDirectory;
use crate::principal::{WantedRights, standing};
use crate::refusal::{of_state, refused};

/// A token to create.
#[derive(Debug, Clone)]
pub struct WantedToken {
    /// Login of its user.
    pub user: String,
    /// Free text.
    pub description: String,
    /// Labels.
    pub labels: Labels,
    /// Lifetime, milliseconds.
    pub life_ms: u64,
    /// Rights of the token.
    pub rights: WantedRights,
    /// Whose membership the platform rights depend on.
    pub warrant: Option<Warrant>,
}

impl ServiceContext {
    /// Refuses rights that the caller's own token does not have.
    ///
    /// # Errors
    /// `permission_denied`, naming the right.
    pub async fn check_grant(&self, caller: &Caller, rights: &TokenRights) -> Result<(), Status> {
        let provider = &self.provider;
        self.read(caller, |tables| {
            let directory = StateDirectory { tables, provider };
            Ok(may_grant(&caller.principal, &directory, rights))
        })
        .await?
        .map_err(|elevation| too_much(&elevation))
    }

    /// Checks that the caller may grant these rights to a token of `user`, and returns its warrant.
    ///
    /// # Errors
    /// `permission_denied` for more than the caller's own token has now, or than would count.
    pub async fn grant(
        &self,
        caller: &Caller,
        user: &str,
        wanted: &WantedRights,
    ) -> Result<Option<Warrant>, Status> {
        let rights = wanted.rights();
        self.check_grant(caller, &rights).await?;
        self.warrant(caller, user, &rights).await
    }

    /// The warrant of the rights that the caller grants: whose memberships they depend on.
    ///
    /// # Errors
    /// `permission_denied` for rights that would have no effect under this warrant.
    pub async fn warrant(
        &self,
        caller: &Caller,
        user: &str,
        rights: &TokenRights,
    ) -> Result<Option<Warrant>, Status> {
        let provider = &self.provider;
        let found = self.read(caller, |tables| {
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

    /// The command that creates a token. A caller bound to a partition passes that binding on, or
    /// it could create an unbound token for itself.
    pub fn new_token(&self, caller: &Caller, mut wanted: WantedToken) -> CreateToken {
        if let Some(partition) = &caller.partition {
            let label = PARTITION_LABEL.to_owned();
            wanted.labels.insert(label, partition.clone());
        }
        let expires = self.now().plus_ms(wanted.life_ms);
        CreateToken {
            id: TokenId::new(Uuid::now_v7()),
            user: wanted.user,
            description: wanted.description,
            labels: wanted.labels,
            permissions: wanted.rights.permissions,
            expires,
            token_type: TokenType::Api,
            project_roles: wanted.rights.project_roles,
            tenant_roles: wanted.rights.tenant_roles,
            admin_role: wanted.rights.admin_role,
            infra_role: wanted.rights.infra_role,
            machine_roles: wanted.rights.machine_roles,
            warrant: wanted.warrant,
        }
    }

    /// Creates a token and signs it. The signed text is shown once and never stored.
    ///
    /// # Errors
    /// As [`ServiceContext::propose`] and [`ServiceContext::sign`].
    pub async fn make_token(
        &self,
        caller: &Caller,
        op: impl Into<Op>,
    ) -> Result<(Arc<Token>, String), Status> {
        let made = self.propose(caller, op).await?.token().map_err(of_state)?;
        let secret = self.sign(&made)?;
        Ok((made, secret))
    }
}

/// The warrant of a granted token: that of the caller's own token, plus the user's membership if
/// there is one. Without the caller's, a token made for another user would outlive the membership
/// of its maker.
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
        // An operator who is also a member grants as a member: that warrant ends with the
        // membership.
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

/// The warrant after an update of platform rights: the union of the old one and the new one. `None`
/// means that it is unchanged, so that an update with the same content stays a no-op.
pub fn merged(token: &Token, new: Option<Warrant>) -> Option<Warrant> {
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
