//! The stored token of a caller, and the concurrency quota that it counts against.

use std::sync::Arc;

use control_state::{Project, Tables, Token};
use proto_types::{Timestamp, TokenId};

use crate::directory::StateDirectory;
use crate::principal::standing;
use crate::token::Claims;

/// The stored token of these claims. `None` means that it was revoked or has expired.
pub(crate) fn good_token<'a>(
    tables: &'a Tables,
    claims: &Claims,
    now: Timestamp,
) -> Option<&'a Arc<Token>> {
    let id: Option<TokenId> = claims.jti.parse().ok();
    let token = id.and_then(|id| tables.get::<Token>(&id));
    token.filter(|token| token.user == claims.sub && token.is_valid(now))
}

/// The name of the concurrency quota that the calls of a token count against. All tokens of a user
/// share one, and so do all components of a tenant: either may have hundreds. A token with platform
/// rights has its own, because the programs of agents and administrators often share one user.
pub(crate) fn share_of(tables: &Tables, provider: &str, token: &Token) -> String {
    if let Some(component) = &token.component {
        let project = tables.get::<Project>(&component.project);
        return project.map_or_else(
            || format!("components of project {}", component.project),
            |project| format!("components of tenant {}", project.tenant),
        );
    }
    let is_of_platform =
        token.admin_role.is_some() || token.infra_role.is_some() || !token.machine_roles.is_empty();
    let directory = StateDirectory { tables, provider };
    let stands = || standing(token.warrant.as_ref(), &token.user, &directory).is_some();
    // A token that outlived its administrator's role counts like that of any user.
    if is_of_platform && stands() {
        format!("token {}", token.id)
    } else {
        format!("user {}", token.user)
    }
}
