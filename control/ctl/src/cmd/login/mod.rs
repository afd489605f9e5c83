//! `metalmesh login` and `metalmesh logout`.

mod listener;

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use control_client::{Client, ClientSettings, SecretText, ServerContext, ServerContexts};
use proto_public::api::v2::{
    ProjectServiceListRequest, TokenQuery, TokenServiceCreateRequest, TokenServiceListRequest,
    TokenServiceRevokeRequest, User, UserServiceGetRequest,
};
use tokio::time::timeout;

use super::given;
use crate::global_flags::GlobalFlags;
use crate::text::{enum_value, percent_encoded};
use listener::TokenListener;

/// Longest time from the start of the command to the end of the login in the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// Lifetime of a token with an admin role, seconds: three hours.
const ADMIN_TOKEN_LIFETIME_S: i64 = 3 * 3600;

/// Flags of `metalmesh login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Print the address without opening a browser.
    #[arg(long)]
    no_browser: bool,
    /// Get a token with this admin role for three hours: editor or viewer.
    ///
    /// Only owners of the provider tenant may request it.
    #[arg(long, value_name = "ROLE")]
    admin_role: Option<String>,
}

/// Flags of `metalmesh logout`.
#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// Also end the session with the identity provider, in a browser.
    #[arg(long)]
    provider: bool,
    /// Print the address without opening a browser.
    #[arg(long, requires = "provider")]
    no_browser: bool,
}

/// Logs in with a browser and stores the token in the context.
pub(crate) async fn login(global: &GlobalFlags, login: &LoginArgs) -> Result<()> {
    let path = ServerContexts::path(global.config.as_deref())?;
    let mut contexts = ServerContexts::load(&path)?;
    let mut context = chosen(&contexts, global)?;
    let listener = TokenListener::bind().await?;
    let address = format!(
        "{}/auth/openid-connect?redirect-url={}",
        context.api_url.trim_end_matches('/'),
        percent_encoded(&listener.url()?)
    );
    noteln!("Log in with a browser on this machine:\n\n  {address}\n");
    if !login.no_browser {
        open(&address);
    }
    let token = tokio::select! {
        token = timeout(LOGIN_TIMEOUT, listener.token()) => {
            token.context("no login within ten minutes; try again")??
        }
        _ = tokio::signal::ctrl_c() => bail!("not logged in"),
    };
    let mut settings = settings(&context, &token);
    let user = whoami(&Client::new(&settings)?).await?;
    if let Some(role) = &login.admin_role {
        let token = admin_token(&Client::new(&settings)?, role).await?;
        settings = settings.with_token(token);
    }
    if context.default_project.is_none() {
        context.default_project = only_project(&Client::new(&settings)?).await;
    }
    context.api_token = settings.token;
    context.token_file = None;
    let (name, project) = (context.name.clone(), context.default_project.clone());
    contexts.put(context);
    contexts.switch(&name)?;
    contexts.save(&path)?;
    outln!("logged in as {}", user.login);
    outln!("context      {name}");
    outln!("project      {}", project.as_deref().unwrap_or("-"));
    Ok(())
}

/// Revokes the context's token and deletes it from the context file.
pub(crate) async fn logout(global: &GlobalFlags, logout: &LogoutArgs) -> Result<()> {
    let path = ServerContexts::path(global.config.as_deref())?;
    let mut contexts = ServerContexts::load(&path)?;
    let mut context = chosen(&contexts, global)?;
    let Some(token) = context.api_token.take() else {
        bail!(
            "context {:?} stores no token; to revoke a token: metalmesh token revoke ID",
            context.name
        );
    };
    let client = Client::new(&settings(&context, token.expose()))?;
    let ended = revoke(&client, token.expose()).await;
    let url = context.api_url.trim_end_matches('/');
    let address = format!("{url}/auth/logout/openid-connect");
    contexts.put(context);
    contexts.save(&path)?;
    if logout.provider {
        noteln!("End the session with the provider in a browser on this machine:\n\n  {address}\n");
        if !logout.no_browser {
            open(&address);
        }
    }
    // The context file is saved before the result is checked: a server that is away must not keep
    // the token in the file.
    ended.context("the token was deleted from the context, but the server did not revoke it")
}

/// The context that gets the token: the one named or in use, or a new one for a server.
fn chosen(contexts: &ServerContexts, global: &GlobalFlags) -> Result<ServerContext> {
    let known = match &global.context {
        Some(name) => contexts.get(name).ok(),
        None => contexts.current(),
    };
    let url = global
        .api_url
        .as_deref()
        .map(|url| url.trim_end_matches('/'));
    match (known, url) {
        (Some(known), None) => Ok(known.clone()),
        (Some(known), Some(url)) if known.api_url.trim_end_matches('/') == url => Ok(known.clone()),
        (Some(known), Some(url)) if global.context.is_some() => bail!(
            "context {:?} is for {}, not for {url}; choose another one: --context NAME",
            known.name,
            known.api_url
        ),
        (_, Some(url)) => {
            let host = url.split("://").nth(1).unwrap_or(url);
            Ok(ServerContext {
                name: global.context.clone().unwrap_or_else(|| host.to_owned()),
                api_url: url.to_owned(),
                api_token: None,
                token_file: None,
                ca_file: None,
                default_project: None,
            })
        }
        (None, None) => {
            bail!("name the server: metalmesh login --api-url https://HOST[:PORT] [--context NAME]")
        }
    }
}

fn settings(context: &ServerContext, token: &str) -> ClientSettings {
    ClientSettings {
        ca_file: context.ca_file.clone(),
        default_project: context.default_project.clone(),
        token: Some(SecretText::new(token)),
        ..ClientSettings::new(&context.api_url)
    }
}

async fn whoami(client: &Client) -> Result<User> {
    let answer = client.users().get(UserServiceGetRequest {}).await?;
    given(answer.into_inner().user)
}

async fn admin_token(client: &Client, role: &str) -> Result<String> {
    let request = TokenServiceCreateRequest {
        description: "metalmesh login".to_owned(),
        admin_role: Some(enum_value("metalstack.api.v2.AdminRole", role)?),
        expires: Some(prost_types::Duration {
            seconds: ADMIN_TOKEN_LIFETIME_S,
            nanos: 0,
        }),
        ..Default::default()
    };
    let made = client.tokens().create(request).await;
    Ok(made
        .context("the login succeeded, but the server refused the admin role")?
        .into_inner()
        .secret)
}

/// The caller's project. `None` unless the caller has exactly one.
async fn only_project(client: &Client) -> Option<String> {
    let request = ProjectServiceListRequest { query: None };
    let answer = client.projects().list(request).await.ok()?;
    match answer.into_inner().projects.as_slice() {
        [one] => Some(one.uuid.clone()),
        _ => None,
    }
}

async fn revoke(client: &Client, secret: &str) -> Result<()> {
    let id = token_id(secret).context("the token was not issued by metalmesh")?;
    let query = TokenQuery {
        uuid: Some(id.clone()),
        ..Default::default()
    };
    let own = TokenServiceListRequest { query: Some(query) };
    // An expired or revoked token cannot call `Revoke`, and needs no revocation.
    if client
        .tokens()
        .list(own)
        .await
        .is_err_and(|status| status.code() == tonic::Code::Unauthenticated)
    {
        return Ok(());
    }
    client
        .tokens()
        .revoke(TokenServiceRevokeRequest { uuid: id })
        .await?;
    Ok(())
}

/// The id in a token's claims, which are not verified here.
fn token_id(secret: &str) -> Option<String> {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let claims = secret.split('.').nth(1)?;
    let claims: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some(claims.get("jti")?.as_str()?.to_owned())
}

/// Opens a browser if the host seems to have one. Failures are logged alone, as the address was
/// printed before.
fn open(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    if !has_screen {
        return;
    }
    let opened = Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        tracing::debug!(error = %error, "no browser was opened");
    }
}
