//! Metadata and keys of a provider, read by HTTP.

use std::sync::Arc;
use std::time::Duration;

use base_outbound::BodyError;
use proto_types::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::error::ProviderError;
use super::keys::Keys;

/// Longest time for a request to the provider.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer that is read, bytes. A larger one fails the login.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The provider's metadata (OpenID Connect Discovery 1.0).
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Metadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) jwks_uri: Url,
    /// OpenID Connect RP-Initiated Logout 1.0; not every provider has it.
    pub(super) end_session_endpoint: Option<Url>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// The answer of the token endpoint.
#[derive(Deserialize)]
pub(super) struct Tokens {
    pub(super) id_token: Option<String>,
}

/// Metadata and keys of a provider, as of one moment.
#[derive(Debug)]
pub(super) struct ProviderConfig {
    pub(super) metadata: Metadata,
    pub(super) keys: Keys,
    pub(super) at: Timestamp,
}

/// Requests metadata and keys of a provider, both within [`TIMEOUT`].
pub(super) async fn ask(
    http: reqwest::Client,
    issuer: String,
    now: Timestamp,
) -> Result<Arc<ProviderConfig>, ProviderError> {
    const WHAT: &str = "the provider's configuration";
    let asked = async {
        let base = issuer.trim_end_matches('/');
        let about = format!("{base}/.well-known/openid-configuration");
        let metadata: Metadata = read(http.get(about), WHAT).await?;
        if metadata.issuer != issuer {
            return Err(ProviderError::Issuer(metadata.issuer));
        }
        let keys = http.get(metadata.jwks_uri.clone());
        Ok(Arc::new(ProviderConfig {
            keys: read(keys, "the provider's keys").await?,
            metadata,
            at: now,
        }))
    };
    let late = |_| ProviderError::Unreachable {
        what: WHAT,
        reason: "it took too long".to_owned(),
    };
    tokio::time::timeout(TIMEOUT, asked).await.map_err(late)?
}

/// Sends a request and reads JSON of at most [`ANSWER_BYTES_MAX`].
pub(super) async fn read<T: DeserializeOwned>(
    request: reqwest::RequestBuilder,
    what: &'static str,
) -> Result<T, ProviderError> {
    let odd = |reason: String| ProviderError::Unreachable { what, reason };
    let failed = |error: reqwest::Error| odd(base_outbound::reason(error));
    let mut answer = request.send().await.map_err(failed)?;
    let status = answer.status();
    let body = base_outbound::body(&mut answer, ANSWER_BYTES_MAX)
        .await
        .map_err(|error| match error {
            BodyError::Broken(error) => failed(error),
            BodyError::TooLong => odd(error.to_string()),
        })?;
    if !status.is_success() {
        let said: Option<Value> = serde_json::from_slice(&body).ok();
        let said =
            said.and_then(|answer| Some(answer.get("error")?.as_str()?.chars().take(64).collect()));
        let said: String = said.unwrap_or_default();
        return Err(odd(format!("it answered {status} {said}")));
    }
    serde_json::from_slice(&body).map_err(|error| odd(format!("the answer is odd: {error}")))
}
