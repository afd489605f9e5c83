//! The request for a token: the credential, and the scope that it asks for.

use proto_types::ProjectId;
use serde_json::Value;

use crate::error::IronicError;

/// The claim of a request about the bearer of its token.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum IdentityProof {
    /// A user and the token as the password.
    Password {
        /// Name or id of the user, which have to be the login of the token's user.
        user: String,
        /// The token.
        token: String,
    },
    /// An application credential: the token as its secret.
    Credential {
        /// Its id or name: that of the token, or of the one project that the token is for.
        id: String,
        /// The token.
        token: String,
    },
    /// A token, perhaps with the scope that an earlier request got.
    Token(String),
}

/// The scope that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScopeWish {
    /// The one that follows from the token.
    OfToken,
    /// The whole site.
    System,
    /// A project by its id.
    Project(ProjectId),
    /// A project by its name, among those of the token.
    ProjectNamed(String),
}

/// A request for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenRequest {
    /// Name of the method, for the answer.
    pub(super) method: &'static str,
    /// The credential.
    pub(super) proof: IdentityProof,
    /// The scope.
    pub(super) scope: ScopeWish,
}

impl std::fmt::Debug for IdentityProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, name) = match self {
            Self::Password { user, .. } => ("Password", user.as_str()),
            Self::Credential { id, .. } => ("Credential", id.as_str()),
            Self::Token(_) => ("Token", ""),
        };
        f.debug_tuple(kind).field(&name).finish_non_exhaustive()
    }
}

impl IdentityProof {
    /// The token's text.
    pub(super) fn token(&self) -> &str {
        match self {
            Self::Password { token, .. } | Self::Credential { token, .. } | Self::Token(token) => {
                token
            }
        }
    }
}

impl TokenRequest {
    /// Reads the body of `POST /v3/auth/tokens`.
    ///
    /// # Errors
    /// 400 for a body that is malformed, and for a method or a scope that is not served.
    pub(super) fn parse(body: &Value) -> Result<Self, IronicError> {
        let auth = &body["auth"];
        let identity = &auth["identity"];
        let methods = identity["methods"].as_array();
        let method = match methods.map(Vec::as_slice) {
            Some([method]) => method.as_str().unwrap_or_default(),
            _ => {
                return Err(refused(
                    "auth.identity.methods",
                    "must have exactly one method",
                ));
            }
        };
        let (method, proof) = match method {
            "password" => ("password", password(&identity["password"]["user"])?),
            "application_credential" => (
                "application_credential",
                credential(&identity["application_credential"])?,
            ),
            "token" => {
                let id = text("auth.identity.token.id", &identity["token"]["id"])?;
                ("token", IdentityProof::Token(id))
            }
            _ => {
                let rule = "must be password, application_credential or token";
                return Err(refused("auth.identity.methods", rule));
            }
        };
        let scope = scope(&auth["scope"])?;
        Ok(Self {
            method,
            proof,
            scope,
        })
    }
}

fn refused(field: &str, rule: &str) -> IronicError {
    IronicError::invalid(format!("{field}: {rule}"))
}

fn text(field: &str, value: &Value) -> Result<String, IronicError> {
    let text = value.as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| refused(field, "must be a text"))?;
    Ok(text.to_owned())
}

fn password(user: &Value) -> Result<IdentityProof, IronicError> {
    let name = user.get("id").or_else(|| user.get("name"));
    Ok(IdentityProof::Password {
        user: text("auth.identity.password.user", name.unwrap_or(&Value::Null))?,
        token: text("auth.identity.password.user.password", &user["password"])?,
    })
}

fn credential(found: &Value) -> Result<IdentityProof, IronicError> {
    let id = found.get("id").or_else(|| found.get("name"));
    Ok(IdentityProof::Credential {
        id: text(
            "auth.identity.application_credential",
            id.unwrap_or(&Value::Null),
        )?,
        token: text(
            "auth.identity.application_credential.secret",
            &found["secret"],
        )?,
    })
}

fn scope(scope: &Value) -> Result<ScopeWish, IronicError> {
    if scope.is_null() || scope == "unscoped" {
        return Ok(ScopeWish::OfToken);
    }
    if scope["system"]["all"] == true {
        return Ok(ScopeWish::System);
    }
    let project = &scope["project"];
    if let Some(id) = project.get("id") {
        let id = text("auth.scope.project.id", id)?;
        let id = id.parse();
        let id = id.map_err(|_| refused("auth.scope.project.id", "must be a UUID"))?;
        return Ok(ScopeWish::Project(id));
    }
    if let Some(name) = project.get("name") {
        let name = text("auth.scope.project.name", name)?;
        return Ok(match name.parse() {
            Ok(id) => ScopeWish::Project(id),
            Err(_) => ScopeWish::ProjectNamed(name),
        });
    }
    let rule = "must be {\"system\": {\"all\": true}} or a project by its id or name";
    Err(refused("auth.scope", rule))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROJECT: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";

    fn body(identity: Value, scope: Value) -> Value {
        json!({"auth": {"identity": identity, "scope": scope}})
    }

    #[test]
    fn each_way_to_authenticate() {
        let password = json!({"methods": ["password"], "password": {"user": {
            "name": "ada", "domain": {"name": "Default"}, "password": "a.b.c"}}});
        let credential = json!({"methods": ["application_credential"],
            "application_credential": {"id": PROJECT, "secret": "a.b.c"}});
        let token = json!({"methods": ["token"], "token": {"id": "system:a.b.c"}});
        let by_password = IdentityProof::Password {
            user: "ada".to_owned(),
            token: "a.b.c".to_owned(),
        };
        let by_credential = IdentityProof::Credential {
            id: PROJECT.to_owned(),
            token: "a.b.c".to_owned(),
        };
        for (identity, method, proof) in [
            (password, "password", by_password),
            (credential, "application_credential", by_credential),
            (
                token,
                "token",
                IdentityProof::Token("system:a.b.c".to_owned()),
            ),
        ] {
            let parsed = TokenRequest::parse(&body(identity, Value::Null)).unwrap();
            let expected = TokenRequest {
                method,
                proof,
                scope: ScopeWish::OfToken,
            };
            assert_eq!(parsed, expected);
            assert!(!format!("{parsed:?}").contains("a.b.c"), "{parsed:?}");
        }
    }

    #[test]
    fn scopes_of_requests() {
        let project = ScopeWish::Project(PROJECT.parse().unwrap());
        let plain = PROJECT.replace('-', "");
        for (wanted, expected) in [
            (Value::Null, ScopeWish::OfToken),
            (json!("unscoped"), ScopeWish::OfToken),
            (json!({"system": {"all": true}}), ScopeWish::System),
            (json!({"project": {"id": PROJECT}}), project.clone()),
            (json!({"project": {"id": plain}}), project.clone()),
            (json!({"project": {"name": PROJECT}}), project),
            (
                json!({"project": {"name": "web", "domain": {"id": "default"}}}),
                ScopeWish::ProjectNamed("web".to_owned()),
            ),
        ] {
            assert_eq!(scope(&wanted).unwrap(), expected, "{wanted}");
        }
    }

    #[test]
    fn malformed_requests_are_refused_by_field() {
        let token = json!({"methods": ["token"], "token": {"id": "a.b.c"}});
        for (body, named) in [
            (Value::Null, "methods"),
            (json!([]), "methods"),
            (
                body(json!({"methods": ["password", "totp"]}), Value::Null),
                "methods",
            ),
            (body(json!({"methods": ["totp"]}), Value::Null), "methods"),
            (body(json!({"methods": ["token"]}), Value::Null), "token.id"),
            (
                body(json!({"methods": ["password"]}), Value::Null),
                "password.user",
            ),
            (
                body(json!({"methods": ["application_credential"]}), Value::Null),
                "application_credential",
            ),
            (
                body(token.clone(), json!({"domain": {"id": "default"}})),
                "auth.scope",
            ),
            (
                body(token.clone(), json!({"project": {"id": "x"}})),
                "project.id",
            ),
            (body(token, json!({"project": {"name": 7}})), "project.name"),
        ] {
            let refused = TokenRequest::parse(&body).unwrap_err();
            assert_eq!(refused.status, http::StatusCode::BAD_REQUEST, "{body}");
            assert!(refused.text.contains(named), "{body}: {}", refused.text);
        }
    }
}
