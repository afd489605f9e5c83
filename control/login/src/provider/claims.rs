//! Validates the claims of an id token (OpenID Connect Core 1.0, 3.1.3.7).

use serde::Deserialize;
use serde_json::{Map, Value};

/// Tolerated clock skew between provider and server, seconds.
const CLOCK_SKEW_S: u64 = 60;
/// An id token that was issued longer ago than this is refused, seconds.
const AGE_MAX_S: u64 = 600;

/// Claims of an id token.
#[derive(Debug, Deserialize)]
pub(super) struct IdClaims {
    iss: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nonce: Option<String>,
    /// The rest: who it is.
    #[serde(flatten)]
    pub(super) user: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// The reason why an id token is not valid for this login.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Foreign {
    #[error("the id token cannot be read")]
    Malformed,
    #[error("the id token is from {0:?}")]
    Issuer(String),
    #[error("the id token is for another client")]
    Audience,
    #[error("the id token is of another login")]
    Nonce,
    #[error("the id token is over or not of now; check both clocks")]
    Time,
}

impl IdClaims {
    /// Reads a token's payload and checks whether it is for this client and this login.
    pub(super) fn read(
        payload: &[u8],
        issuer: &str,
        client: &str,
        nonce: &str,
        now_s: u64,
    ) -> Result<Self, Foreign> {
        let claims: Self = serde_json::from_slice(payload).map_err(|_| Foreign::Malformed)?;
        if claims.iss != issuer {
            return Err(Foreign::Issuer(claims.iss));
        }
        let is_party = claims.azp.as_deref().is_none_or(|azp| azp == client);
        let is_audience = match &claims.aud {
            Audience::One(one) => one == client,
            // Of several audiences one is the party that the token was issued to.
            Audience::Many(all) => {
                all.iter().any(|audience| audience == client)
                    && (all.len() == 1 || claims.azp.is_some())
            }
        };
        if !is_audience || !is_party {
            return Err(Foreign::Audience);
        }
        if claims.nonce.as_deref() != Some(nonce) {
            return Err(Foreign::Nonce);
        }
        let at = |seconds: u64| seconds as f64;
        let is_now = claims.exp + at(CLOCK_SKEW_S) > at(now_s)
            && claims.iat < at(now_s + CLOCK_SKEW_S)
            && claims.iat + at(AGE_MAX_S) > at(now_s);
        if is_now {
            Ok(claims)
        } else {
            Err(Foreign::Time)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(change: &Value) -> Result<IdClaims, Foreign> {
        let mut claims = json!({
            "iss": "https://id.example", "aud": "mesh", "exp": 2000, "iat": 1000,
            "nonce": "n", "sub": "ada",
        });
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        IdClaims::read(
            claims.to_string().as_bytes(),
            "https://id.example",
            "mesh",
            "n",
            1001,
        )
    }

    #[test]
    fn tokens_of_others_and_of_other_times_do_not_count() {
        assert_eq!(read(&json!({})).unwrap().user["sub"], "ada");
        read(&json!({"aud": ["mesh"]})).unwrap();
        read(&json!({"aud": ["mesh", "b"], "azp": "mesh"})).unwrap();
        for (change, why) in [
            (
                json!({"iss": "https://id.example/"}),
                Foreign::Issuer("https://id.example/".into()),
            ),
            (json!({"aud": "other"}), Foreign::Audience),
            (json!({"aud": []}), Foreign::Audience),
            (json!({"aud": ["mesh", "b"]}), Foreign::Audience),
            (json!({"azp": "other"}), Foreign::Audience),
            (json!({"nonce": "m"}), Foreign::Nonce),
            (json!({"nonce": null}), Foreign::Nonce),
            (json!({"exp": 900}), Foreign::Time),
            (json!({"iat": 1100}), Foreign::Time),
            (json!({"iat": 400}), Foreign::Time),
            (json!({"exp": "soon"}), Foreign::Malformed),
        ] {
            assert_eq!(read(&change).unwrap_err(), why, "{change}");
        }
    }
}
