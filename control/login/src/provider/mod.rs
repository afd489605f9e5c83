//! An OpenID Connect provider: the code flow with PKCE.
//!
//! `keys` verifies the signatures of its answers with *ring*, `claims` checks the content of an id
//! token, and `discovery` reads its metadata.

mod claims;
mod discovery;
mod error;
mod json_web_key;
mod keys;
mod person;
mod settings;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use proto_types::Timestamp;
use reqwest::redirect::Policy;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::flow::Flow;
use claims::{Foreign, IdClaims};
use discovery::{Metadata, ProviderConfig, TIMEOUT, Tokens, ask, read};
use json_web_key::Unsigned;
use person::person;

pub use error::ProviderError;
pub(super) use person::Person;
pub use settings::ProviderSettings;

/// Lifetime of the cached provider metadata and keys, milliseconds: an hour.
const FRESH_MS: u64 = 3_600_000;
/// Least interval between refreshes that unknown signing keys cause, milliseconds.
const AGAIN_MS: u64 = 10_000;
/// Retry delay after a provider failure; until then every login gets the same error.
const FAILED_FOR: Duration = Duration::from_secs(5);

/// A discovery request in flight, shared by all callers.
type DiscoveryRequest = Shared<BoxFuture<'static, Result<Arc<ProviderConfig>, ProviderError>>>;

/// Cached metadata and keys of the provider, and the request that refreshes them.
#[derive(Default)]
struct ProviderCache {
    known: Option<Arc<ProviderConfig>>,
    failed: Option<(Instant, ProviderError)>,
    flight: Option<DiscoveryRequest>,
}

/// A provider, with its cached metadata and keys.
pub(super) struct OidcProvider {
    settings: ProviderSettings,
    callback: Url,
    http: reqwest::Client,
    knowledge: Mutex<ProviderCache>,
}

impl std::fmt::Debug for OidcProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcProvider")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl OidcProvider {
    /// A provider. Sends no request yet, so that a server starts while the provider is away.
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

    /// The provider's page that ends a session. `None` means that it has none. The provider asks the
    /// user first: no id token is stored that would name the session.
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

#[cfg(test)]
mod tests;
