//! Logging in with a browser, at the paths that the published command line opens.
//!
//! `GET /auth/openid-connect?redirect-url=URL` starts a login. With a provider the browser is sent
//! there and comes back to `/auth/openid-connect/callback`; without one it gets a form for built-in
//! users. Both end at `URL?token=TOKEN`. The browser stores the flow as a sealed cookie (`flow`),
//! so that any node can finish it.
//!
//! Invariants:
//! - a token goes only to an address that [`Redirects`] allows, checked before the login starts;
//! - a flow belongs to one browser and one login, and ends after ten minutes;
//! - unknown logins and wrong passwords are refused alike, in words and in time;
//! - attempts are bounded for each caller and login (`control_gate::passwords`);
//! - a login gives the rights of a user: the token has no role of administrators.
//!
//! Entry point: [`Login`].

mod failure;
mod flow;
mod page;
mod provider;
mod redirect;
mod sign_in;
mod visit;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use control_front::BrowserPages;
use control_gate::ServiceContext;
use control_gate::passwords::{Attempts, Hasher};
use control_pki::SealingKey;
use control_state::User;
use http::{Method, Request, Response, StatusCode};
use proto_types::TenantId;
use tokio::sync::Semaphore;
use tonic::Status;
use url::Url;
use url::form_urlencoded::parse;

use failure::{broken, failed, over, provider_failed};
use flow::Flow;
use page::Page;
use provider::{OidcProvider, Person};
use visit::Visit;

pub use provider::{ProviderError, ProviderSettings};
pub use redirect::{RedirectError, Redirects};

/// Path that starts a login.
const BEGIN: &str = "/auth/openid-connect";
/// Path to which the provider sends the browser back.
const CALLBACK: &str = "/auth/openid-connect/callback";
/// Path to which the form is posted.
const FORM: &str = "/auth/login";
/// Path that deletes the cookie of an unfinished login, and sends the browser on to end its session
/// with the provider.
const LOGOUT: &str = "/auth/logout/openid-connect";
/// Most passwords of strangers being checked or queued. Beyond it a stranger is told to wait. Less
/// than the queue of the hasher, so that users who logged in from the same network before still get
/// through.
const STRANGERS_MAX: usize = 16;
/// Most concurrent code exchanges with the provider.
const EXCHANGES_MAX: usize = 32;
/// `Retry-After` when these slots are taken, seconds.
const BUSY_S: u64 = 5;
/// Longest query or form accepted, bytes.
const QUERY_BYTES_MAX: usize = 8192;

/// How people log in.
#[derive(Debug, Clone)]
pub struct LoginSettings {
    /// Where tokens may go.
    pub redirects: Redirects,
    /// Life of a user's token, milliseconds.
    pub token_life_ms: u64,
    /// `true` if browsers reach the API by HTTPS only; cookies are then marked `Secure`.
    pub is_secure: bool,
    /// The OpenID Connect provider. `None` means built-in users.
    pub provider: Option<ProviderSettings>,
}

/// The login pages.
#[derive(Debug)]
pub struct Login {
    core: Arc<ServiceContext>,
    hasher: Arc<Hasher>,
    seal: SealingKey,
    settings: LoginSettings,
    provider: Option<OidcProvider>,
    attempts: Attempts,
    strangers: Semaphore,
    exchanges: Semaphore,
}

impl Login {
    /// Pages over the state; `seal` is the same on all nodes.
    ///
    /// # Errors
    /// When the provider's settings cannot be used.
    pub fn new(
        core: Arc<ServiceContext>,
        hasher: Arc<Hasher>,
        seal: SealingKey,
        settings: LoginSettings,
    ) -> Result<Self, ProviderError> {
        let provider = settings
            .provider
            .clone()
            .map(OidcProvider::new)
            .transpose()?;
        Ok(Self {
            core,
            hasher,
            seal,
            settings,
            provider,
            attempts: Attempts::default(),
            strangers: Semaphore::new(STRANGERS_MAX),
            exchanges: Semaphore::new(EXCHANGES_MAX),
        })
    }

    /// Starts a login.
    async fn begin(&self, visit: &Visit<'_>) -> Response<Bytes> {
        let Some(redirect) = self.settings.redirects.allowed(visit.field("redirect-url")) else {
            let text = "The redirect-url is missing, or no token may go there. Allowed are \
                        addresses of this machine (http://127.0.0.1:PORT/...), and those that \
                        login.redirects of the server's configuration names.";
            return Page::text(StatusCode::BAD_REQUEST, "Not there", text).answer(None);
        };
        let now = self.core.now();
        let Some((flow, cookie)) = self.flow(redirect) else {
            return broken();
        };
        let Some(provider) = &self.provider else {
            return page::form(&flow.state, &flow.redirect, None).answer(Some(&cookie));
        };
        match provider.authorise(&flow, now).await {
            Ok(url) => page::redirect(&url, Some(&cookie)),
            Err(error) => provider_failed("Not logged in", &error),
        }
    }

    /// Logs a browser out: deletes our cookie, and sends the browser on to the provider, which ends
    /// its own session.
    async fn logout(&self) -> Response<Bytes> {
        let end = match &self.provider {
            Some(provider) => provider.end_session(self.core.now()).await,
            None => Ok(None),
        };
        match end {
            Ok(Some(url)) => page::redirect(&url, Some(&self.forget())),
            Ok(None) => {
                let text = "This browser keeps nothing. Tokens end with: metalmesh logout.";
                Page::text(StatusCode::OK, "Logged out", text).answer(Some(&self.forget()))
            }
            Err(error) => provider_failed("Still logged in there", &error),
        }
    }

    fn flow(&self, redirect: Url) -> Option<(Flow, String)> {
        let flow = Flow::begin(redirect, self.core.now())?;
        let cookie = flow.cookie(&self.seal, self.settings.is_secure)?;
        Some((flow, cookie))
    }

    /// Finishes a login through the provider.
    async fn callback(&self, visit: &Visit<'_>) -> Response<Bytes> {
        let now = self.core.now();
        let (state, headers) = (visit.field("state"), visit.headers);
        let flow = Flow::of_browser(headers, state, &self.seal, now);
        let (Some(flow), Some(provider)) = (flow, &self.provider) else {
            return over();
        };
        let code = visit.field("code");
        if code.is_empty() {
            tracing::info!(error = visit.field("error"), "the provider refused a login");
            let text = "The provider did not let you in. Begin again: metalmesh login.";
            let page = Page::text(StatusCode::UNAUTHORIZED, "Not logged in", text);
            return page.answer(Some(&self.forget()));
        }
        if let Err(seconds) = self.attempts.take_caller(visit.caller, now) {
            tracing::warn!(caller = %visit.caller, "too many attempts to log in");
            return page::wait(seconds);
        }
        let Ok(_place) = self.exchanges.try_acquire() else {
            return page::wait(BUSY_S);
        };
        match provider.person(&flow, code, now).await {
            Ok(person) => self.let_in(visit, &flow, person, BEGIN).await,
            Err(error) => provider_failed("Not logged in", &error),
        }
    }

    /// Finishes a login of a built-in user.
    async fn form(&self, visit: &Visit<'_>) -> Response<Bytes> {
        let now = self.core.now();
        let (state, headers) = (visit.field("state"), visit.headers);
        let flow = Flow::of_browser(headers, state, &self.seal, now);
        let (Some(flow), None) = (flow, &self.provider) else {
            return over();
        };
        let login = visit.field("login").trim();
        let is_stranger = match self.attempts.take(visit.caller, login, now) {
            Ok(is_stranger) => is_stranger,
            Err(seconds) => {
                tracing::warn!(caller = %visit.caller, "too many attempts to log in");
                return page::wait(seconds);
            }
        };
        let place = is_stranger.then(|| self.strangers.try_acquire());
        let Ok(_place) = place.transpose() else {
            return page::wait(BUSY_S);
        };
        let user = match self.user(login).await {
            Ok(user) => user,
            Err(status) => return failed(&status),
        };
        let hash = user.as_ref().map(|user| user.password.clone());
        let password = visit.field("password").to_owned();
        match (self.hasher.is(password, hash).await, user) {
            (Ok(true), Some(user)) => {
                self.attempts.succeeded(visit.caller, login, now);
                let person = Person {
                    login: user.login.to_string(),
                    name: Some(user.name.clone()),
                    email: Some(user.email.clone()),
                    picture: None,
                };
                self.let_in(visit, &flow, person, FORM).await
            }
            (Err(status), _) => failed(&status),
            (Ok(_), user) => {
                if let Some(user) = user {
                    self.record_refusal(visit, user.login.as_str()).await;
                }
                let text = "Login or password is wrong.";
                page::form(&flow.state, &flow.redirect, Some(text)).answer(None)
            }
        }
    }

    async fn user(&self, login: &str) -> Result<Option<Arc<User>>, Status> {
        let login: Option<TenantId> = login.parse().ok();
        let find = |tables: &control_state::Tables| {
            Ok(login.and_then(|login| tables.get::<User>(&login).cloned()))
        };
        self.core.read_latest(find).await
    }

    fn forget(&self) -> String {
        flow::forget(self.settings.is_secure)
    }
}

#[tonic::async_trait]
impl BrowserPages for Login {
    async fn answer(&self, request: Request<Bytes>, peer: Option<SocketAddr>) -> Response<Bytes> {
        let (method, uri) = (request.method(), request.uri());
        let is_post = method == Method::POST;
        let text: &[u8] = match is_post {
            true => request.body(),
            false => uri.query().unwrap_or_default().as_bytes(),
        };
        if text.len() > QUERY_BYTES_MAX {
            let text = "The request is too long.";
            return Page::text(StatusCode::BAD_REQUEST, "Too long", text).answer(None);
        }
        let visit = Visit {
            headers: request.headers(),
            fields: parse(text).into_owned().collect(),
            caller: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip()),
        };
        match (uri.path(), is_post, method == Method::GET) {
            (BEGIN, false, true) => self.begin(&visit).await,
            (CALLBACK, false, true) => self.callback(&visit).await,
            (FORM, true, false) => self.form(&visit).await,
            (LOGOUT, false, true) => self.logout().await,
            _ => {
                let text = "There is no such page. To log in: metalmesh login.";
                Page::text(StatusCode::NOT_FOUND, "Not found", text).answer(None)
            }
        }
    }
}
