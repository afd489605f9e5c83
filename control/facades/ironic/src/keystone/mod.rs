//! The calls of Keystone that Ironic's clients make, and those of a real Ironic that has this server
//! as its Keystone.
//!
//! A token of Keystone is the text of a scope and a token of metalmesh ([`FacadeCredential`]): it is
//! checked anew by every call, and nothing is stored.

mod catalog;
mod token_body;
mod token_request;

use std::net::SocketAddr;
use std::sync::Arc;

use control_authz::{Principal, granted_role};
use control_gate::{ServiceContext, StateDirectory};
use control_state::Project;
use http::{HeaderMap, Method, StatusCode};
use proto_types::ProjectId;
use serde_json::Value;

use self::token_body::{token, version};
use self::token_request::{IdentityProof, ScopeWish, TokenRequest};
use crate::access::{FacadeCaller, FacadeCredential, FacadeScope};
use crate::answer::IronicAnswer;
use crate::error::IronicError;

/// Header with the token that a call is about.
const SUBJECT_TOKEN: &str = "x-subject-token";

/// A call of Keystone, which needs no caller: it makes one.
#[derive(Debug)]
pub(crate) struct IdentityRequest<'a> {
    /// The state and its time.
    pub(crate) core: &'a Arc<ServiceContext>,
    /// The project whose services have rights of the site.
    pub(crate) service_project: Option<ProjectId>,
    /// Address of the facade without a slash at its end, for the catalogue.
    pub(crate) base: &'a str,
    /// Verb of HTTP.
    pub(crate) verb: &'a Method,
    /// Path below `/v3`; empty for the version itself.
    pub(crate) path: &'a str,
    /// The head.
    pub(crate) headers: &'a HeaderMap,
    /// The body; `Null` if there is none.
    pub(crate) body: &'a Value,
    /// Address of the caller.
    pub(crate) peer: Option<SocketAddr>,
}

/// Answers a call.
///
/// # Errors
/// 401 for a credential that is not valid, 404 for calls that no client makes.
pub(crate) async fn answer(request: &IdentityRequest<'_>) -> Result<IronicAnswer, IronicError> {
    match (request.verb.as_str(), request.path.trim_matches('/')) {
        ("GET", "") => Ok(IronicAnswer::ok(version(request.base))),
        ("POST", "auth/tokens") => issue(request).await,
        ("GET", "auth/tokens") => validate(request).await,
        ("DELETE", "auth/tokens") => refuse_revocation(request).await,
        (_, "" | "auth/tokens") => {
            let text = "Method Not Allowed";
            Err(IronicError::new(StatusCode::METHOD_NOT_ALLOWED, text))
        }
        _ => Err(IronicError::no_route()),
    }
}

impl IdentityRequest<'_> {
    async fn authenticate(
        &self,
        credential: &FacadeCredential,
    ) -> Result<FacadeCaller, IronicError> {
        FacadeCaller::authenticate(self.core, credential, self.peer, self.service_project).await
    }

    /// The projects of this name in which the token has a role, at most two.
    async fn projects_named(&self, token: &str, name: &str) -> Result<Vec<ProjectId>, IronicError> {
        let look = |directory: &StateDirectory<'_>, who: &Principal| -> Vec<ProjectId> {
            let named = directory.tables.all::<Project>();
            let named = named.filter(|project| project.name == name);
            let own = named
                .filter(|project| granted_role(who, directory, &project.id.to_string()).is_some());
            own.map(|project| project.id).take(2).collect()
        };
        let (_, found) = self.core.bearer(token, self.peer, look).await?;
        Ok(found)
    }

    /// The credential of a request in the scope that it asks for.
    async fn scoped(
        &self,
        proof: &IdentityProof,
        wish: &ScopeWish,
    ) -> Result<FacadeCredential, IronicError> {
        let given = match proof {
            IdentityProof::Token(text) => FacadeCredential::parse(text),
            proof => Some(FacadeCredential {
                token: proof.token().to_owned(),
                scope: None,
            }),
        };
        let given = given.ok_or_else(IronicError::unauthenticated)?;
        let scope = match wish {
            ScopeWish::OfToken => given.scope,
            ScopeWish::System => Some(FacadeScope::System),
            ScopeWish::Project(id) => Some(FacadeScope::Project(*id)),
            ScopeWish::ProjectNamed(name) => {
                let found = self.projects_named(&given.token, name).await?;
                Some(FacadeScope::Project(only(&found, name)?))
            }
        };
        Ok(FacadeCredential { scope, ..given })
    }
}

/// The one project of a name.
fn only(found: &[ProjectId], name: &str) -> Result<ProjectId, IronicError> {
    let text = match found {
        [project] => return Ok(*project),
        [] => format!("the token has no role in a project named \"{name}\""),
        _ => format!("several projects are named \"{name}\": name one by its id"),
    };
    Err(IronicError::new(StatusCode::FORBIDDEN, text))
}

async fn issue(request: &IdentityRequest<'_>) -> Result<IronicAnswer, IronicError> {
    let wanted = TokenRequest::parse(request.body)?;
    let credential = request.scoped(&wanted.proof, &wanted.scope).await?;
    let caller = request.authenticate(&credential).await?;
    if !is_true(&wanted.proof, &caller) {
        let text = "the user must be the login of the token's user, and the id of an application \
                    credential that of the token or of its project";
        return Err(IronicError::new(StatusCode::UNAUTHORIZED, text));
    }
    let subject = FacadeCredential {
        token: credential.token,
        scope: Some(caller.scope),
    };
    Ok(IronicAnswer {
        status: StatusCode::CREATED,
        location: None,
        subject_token: Some(subject.text()),
        body: Some(token(&caller, wanted.method, request.base)),
    })
}

/// `true` if the names that came with a token are its own. The token alone is the proof: a wrong name
/// is a mistake of the client, which would go on as somebody else than it means to be.
fn is_true(proof: &IdentityProof, caller: &FacadeCaller) -> bool {
    let bearer = &caller.bearer.principal;
    match proof {
        IdentityProof::Token(_) => true,
        IdentityProof::Password { user, .. } => *user == *bearer.user,
        IdentityProof::Credential { id, .. } => {
            let project = id.parse().ok().map(FacadeScope::Project);
            *id == *bearer.token || project == Some(caller.scope)
        }
    }
}

/// The token of the call's subject, for callers with a token of their own.
async fn validate(request: &IdentityRequest<'_>) -> Result<IronicAnswer, IronicError> {
    let subject = subject(request).await?;
    let caller = request
        .authenticate(&subject)
        .await
        .map_err(|refused| match refused.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => unknown_token(),
            _ => refused,
        })?;
    let answer = IronicAnswer::ok(token(&caller, "token", request.base));
    Ok(answer.with_subject_token(subject.text()))
}

/// A token of Keystone is the token of metalmesh, which other programs may use: it ends where it was
/// made, and not by a client that logs out.
async fn refuse_revocation(request: &IdentityRequest<'_>) -> Result<IronicAnswer, IronicError> {
    subject(request).await?;
    let text = "a token of this service is an API token of metalmesh: revoke it with `metalmesh \
                token revoke`";
    Err(IronicError::new(StatusCode::FORBIDDEN, text))
}

/// The credential in `X-Subject-Token`, if the caller has a valid token.
async fn subject(request: &IdentityRequest<'_>) -> Result<FacadeCredential, IronicError> {
    let own = FacadeCredential::of_request(request.headers);
    let own = own.ok_or_else(IronicError::unauthenticated)?;
    request.authenticate(&own).await?;
    let subject = request.headers.get(SUBJECT_TOKEN);
    let subject = subject.and_then(|value| value.to_str().ok());
    subject
        .and_then(|text| FacadeCredential::parse(text.trim()))
        .ok_or_else(unknown_token)
}

fn unknown_token() -> IronicError {
    let text = "Could not find token: it is not valid.";
    IronicError::new(StatusCode::NOT_FOUND, text)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn names_have_to_be_unambiguous() {
        let project = |number| ProjectId::new(Uuid::from_u128(number));
        assert_eq!(only(&[project(1)], "web").unwrap(), project(1));
        for (found, named) in [
            (vec![], "no role"),
            (vec![project(1), project(2)], "by its id"),
        ] {
            let refused = only(&found, "web").unwrap_err();
            assert_eq!(refused.status, StatusCode::FORBIDDEN);
            assert!(refused.text.contains(named), "{}", refused.text);
        }
    }
}
