//! An OpenID Connect provider: the code flow with PKCE.
//!
//! Its answers are read with the one provider of cryptography that everything here uses (*ring*),
//! see `keys`; what an id token must say is in `claims`.

mod claims;
mod keys;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base_outbound::{self, BodyError};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use proto_types::Timestamp;
use reqwest::redirect::Policy;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::flow::Flow;
use claims::{Foreign, IdClaims};
use keys::{Keys, Unsigned};

/// How long one request to the provider may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that is read, bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Lifetime of the cached provider metadata and keys, milliseconds: an hour.
const FRESH_MS: u64 = 3_600_000;
/// Least interval between refreshes that unknown signing keys cause, milliseconds.
const AGAIN_MS: u64 = 10_000;
/// Retry delay after a provider failure; until then every login gets the same error.
const FAILED_FOR: Duration = Duration::from_secs(5);

/// Settings of the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Its URL, as its tokens name it.
    pub issuer: String,
    /// Our name there.
    pub client_id: String,
    /// Our secret there.
    pub client_secret: String,
    /// PEM of the authority that signed its certificate; the system's without it.
    pub ca: Option<Vec<u8>>,
    /// Where browsers reach this API.
    pub url: Url,
    /// The claim that becomes the login.
    pub user_claim: String,
}

/// The reason why a login through the provider fails.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProviderError {
    /// The provider does not answer, or not what it should.
    #[error("{what}: {reason}")]
    Unreachable {
        /// The resource that was requested.
        what: &'static str,
        /// The failure.
        reason: String,
    },
    /// It names another issuer.
    #[error("the provider calls itself {0:?}, which is not oidc.issuer")]
    Issuer(String),
    /// Its token does not count.
    #[error("{0}")]
    Token(String),
    /// It did not say who it is.
    #[error("the id token has no {0:?}; see oidc.user_claim")]
    NoClaim(String),
    /// Anybody can say that.
    #[error("the provider has not verified the mail address")]
    Unverified,
    /// The HTTP client cannot be made.
    #[error("oidc.ca_file: {0}")]
    Client(String),
}

/// A user that the provider authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    /// The login.
    pub(super) login: String,
    pub(super) name: Option<String>,
    pub(super) email: Option<String>,
    pub(super) picture: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: Url,
    token_endpoint: Url,
    jwks_uri: Url,
    /// OpenID Connect RP-Initiated Logout 1.0; not every provider has it.
    end_session_endpoint: Option<Url>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
}

#[derive(Debug)]
struct ProviderConfig {
    metadata: Metadata,
    keys: Keys,
    at: Timestamp,
}

/// A discovery request in flight, shared by all callers.
type DiscoveryRequest = Shared<BoxFuture<'static, Result<Arc<ProviderConfig>, ProviderError>>>;

/// Cached metadata and keys of the provider, and the request that refreshes them.
#[derive(Default)]
struct ProviderCache {
    known: Option<Arc<ProviderConfig>>,
    failed: Option<(Instant, ProviderError)>,
    flight: Option<DiscoveryRequest>,
}

/// A provider and what is known of it.
pub(super) struct OidcProvider {
    settings: ProviderSettings,
    callback: Url,
    http: reqwest::Client,
    knowledge: Mutex<ProviderCache>,
}

impl std::fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("client_secret", &"<redacted>")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OidcProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcProvider")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl OidcProvider {
    /// A provider; nothing is asked yet, so that a server starts without it.
    pub(super) fn new(settings: ProviderSettings) -> Result<Self, ProviderError> {
        let failed = |error: reqwest::Error| ProviderError::Client(error.to_string());
        let http = base_outbound::client(settings.ca.as_deref(), Policy::none()).map_err(failed)?;
        let http = http.timeout(TIMEOUT);
        let callback = settings
            .url
            .join("/auth/openid-connect/callback")
            .map_err(|error| ProviderError::Client(error.to_string()))?;
        Ok(Self {
            callback,
            http: http.build().map_err(failed)?,
            settings,
            knowledge: Mutex::default(),
        })
    }

    /// Where the browser goes to log in.
    pub(super) async fn authorise(
        &self,
        flow: &Flow,
        now: Timestamp,
    ) -> Result<Url, ProviderError> {
        let known = self.known(FRESH_MS, now).await?;
        let mut url = known.metadata.authorization_endpoint.clone();
        let challenge = digest(&SHA256, flow.verifier.as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", self.callback.as_str())
            .append_pair("scope", "openid email profile")
            .append_pair("state", &flow.state)
            .append_pair("nonce", &flow.nonce)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Where the browser goes to end its session there, if the provider has such a page. It asks
    /// the person first: it is not told whose session, for no id token is kept.
    pub(super) async fn end_session(&self, now: Timestamp) -> Result<Option<Url>, ProviderError> {
        let known = self.known(FRESH_MS, now).await?;
        let mut url = known.metadata.end_session_endpoint.clone();
        if let Some(url) = &mut url {
            let client = &self.settings.client_id;
            url.query_pairs_mut().append_pair("client_id", client);
        }
        Ok(url)
    }

    /// Exchanges the code and returns the user that it authenticates.
    pub(super) async fn person(
        &self,
        flow: &Flow,
        code: &str,
        now: Timestamp,
    ) -> Result<Person, ProviderError> {
        let known = self.known(FRESH_MS, now).await?;
        let token = self.exchange(&known.metadata, flow, code).await?;
        let payload = match known.keys.payload(&token) {
            // The provider may have rotated its keys since they were cached.
            Err(Unsigned::UnknownKey) => self.known(AGAIN_MS, now).await?.keys.payload(&token),
            payload => payload,
        };
        let refused = |why: String| ProviderError::Token(why);
        let payload = payload.map_err(|why| refused(why.to_string()))?;
        let (issuer, client) = (&self.settings.issuer, &self.settings.client_id);
        let claims = IdClaims::read(&payload, issuer, client, &flow.nonce, now.ms() / 1000);
        let claims = claims.map_err(|why: Foreign| refused(why.to_string()))?;
        person(&claims.user, &self.settings.user_claim)
    }

    /// Trades the code for an id token.
    async fn exchange(
        &self,
        metadata: &Metadata,
        flow: &Flow,
        code: &str,
    ) -> Result<String, ProviderError> {
        let (id, secret) = (&self.settings.client_id, &self.settings.client_secret);
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.callback.as_str()),
            ("code_verifier", &flow.verifier),
        ];
        let mut request = self
            .http
            .post(metadata.token_endpoint.clone())
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json");
        let ways = metadata.token_endpoint_auth_methods_supported.as_deref();
        let takes = |way: &str| ways.is_some_and(|all| all.iter().any(|method| method == way));
        if takes("client_secret_post") && !takes("client_secret_basic") {
            fields.extend([("client_id", id.as_str()), ("client_secret", secret)]);
        } else {
            let encoded = |text: &str| -> String { byte_serialize(text.as_bytes()).collect() };
            let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
            request = request.header("authorization", format!("Basic {pair}"));
        }
        let form = Serializer::new(String::new()).extend_pairs(fields).finish();
        let what = "the provider's token endpoint";
        let tokens: Tokens = read(request.body(form), what).await?;
        let missing = || ProviderError::Token("the provider's answer has no id token".to_owned());
        tokens.id_token.ok_or_else(missing)
    }

    /// Provider metadata and keys, at most `age_max_ms` old. Concurrent callers share one
    /// request and its failure.
    async fn known(
        &self,
        age_max_ms: u64,
        now: Timestamp,
    ) -> Result<Arc<ProviderConfig>, ProviderError> {
        let flight = {
            let mut knowledge = self.knowledge();
            let known = knowledge.known.as_ref();
            if let Some(known) = known.filter(|known| now.since_ms(known.at) < age_max_ms) {
                return Ok(Arc::clone(known));
            }
            if let Some((at, error)) = &knowledge.failed
                && at.elapsed() < FAILED_FOR
            {
                return Err(error.clone());
            }
            let asked = || {
                let (http, issuer) = (self.http.clone(), self.settings.issuer.clone());
                ask(http, issuer, now).boxed().shared()
            };
            knowledge.flight.get_or_insert_with(asked).clone()
        };
        let answer = flight.clone().await;
        let mut knowledge = self.knowledge();
        // Only the first caller to get the answer stores it: a later one could overwrite a newer
        // request.
        let is_current = |current: &DiscoveryRequest| current.ptr_eq(&flight);
        if knowledge.flight.as_ref().is_some_and(is_current) {
            knowledge.flight = None;
            match &answer {
                Ok(known) => {
                    knowledge.known = Some(Arc::clone(known));
                    knowledge.failed = None;
                }
                Err(error) => knowledge.failed = Some((Instant::now(), error.clone())),
            }
        }
        answer
    }

    fn knowledge(&self) -> MutexGuard<'_, ProviderCache> {
        self.knowledge
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks a provider about itself, within the time of one request.
async fn ask(
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

/// Sends a request and reads JSON, bounded.
async fn read<T: DeserializeOwned>(
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

/// The user that the claims identify.
fn person(claims: &Map<String, Value>, user_claim: &str) -> Result<Person, ProviderError> {
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

#[cfg(test)]
mod tests;
