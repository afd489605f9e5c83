//! The user that a provider authenticated.

use serde_json::{Map, Value};

use super::error::ProviderError;

/// A user that the provider authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    /// The login.
    pub(crate) login: String,
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) picture: Option<String>,
}

/// The user that the claims identify.
pub(super) fn person(
    claims: &Map<String, Value>,
    user_claim: &str,
) -> Result<Person, ProviderError> {
    let text = |name: &str| {
        let value = claims.get(name)?.as_str()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let user = text(user_claim).ok_or_else(|| ProviderError::NoClaim(user_claim.to_owned()))?;
    if user_claim == "email" && claims.get("email_verified") != Some(&Value::Bool(true)) {
        return Err(ProviderError::Unverified);
    }
    Ok(Person {
        login: format!("{user}@openid-connect"),
        name: text("name").or_else(|| text("preferred_username")),
        email: text("email"),
        picture: text("picture").filter(|url| url.starts_with("https://")),
    })
}
