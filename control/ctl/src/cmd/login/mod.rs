//! `metalmesh login` and `metalmesh logout`.

mod listener;

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use control_client::{Client, Context, Contexts, Secret, Settings};
use proto_public::api::v2::{
    ProjectServiceListRequest, TokenQuery, TokenServiceCreateRequest, TokenServiceListRequest,
    TokenServiceRevokeRequest, User, UserServiceGetRequest,
};
use tokio::time::timeout;

use super::given;
use crate::args::Global;
use crate::text::{enum_value, percent_encoded};
use listener::Listener;

/// How long somebody has to log in.
const PATIENCE: Duration = Duration::from_secs(600);
/// Life of a token with an admin role, seconds: three hours.
const ADMIN_LIFE_S: i64 = 3 * 3600;

/// Flags of `metalmesh login`.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// Only print the address; open no browser.
    #[arg(long)]
    no_browser: bool,
    /// Go on with a token that has this role over everything, for three hours: editor or viewer.
    ///
    /// Owners of the provider's tenant may order it.
    #[arg(long, value_name = "ROLE")]
    admin_role: Option<String>,
}

/// Flags of `metalmesh logout`.
#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// Also end the browser's session with the provider of the logins, in a browser.
    #[arg(long)]
    provider: bool,
    /// Only print the address; open no browser.
    #[arg(long, requires = "provider")]
    no_browser: bool,
}

/// Logs in with a browser and keeps the token in the context.
pub(crate) async fn login(global: &Global, login: &Login) -> Result<()> {
    let path = Contexts::path(global.config.as_deref())?;
    let mut contexts = Contexts::load(&path)?;
    let mut context = chosen(&contexts, global)?;
    let listener = Listener::bind().await?;
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
        token = timeout(PATIENCE, listener.token()) => {
            token.context("nobody logged in within ten minutes; begin again")??
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

/// Ends the context's token and forgets it.
pub(crate) async fn logout(global: &Global, logout: &Logout) -> Result<()> {
    let path = Contexts::path(global.config.as_deref())?;
    let mut contexts = Contexts::load(&path)?;
    let mut context = chosen(&contexts, global)?;
    let Some(token) = context.api_token.take() else {
        bail!(
            "context {:?} keeps no token; to end one: metalmesh token revoke ID",
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
    // It is forgotten in any case.
    ended.context("the token was forgotten, but the server did not end it")
}

/// The context that gets the token: the one named or in use, or a new one for a server.
fn chosen(contexts: &Contexts, global: &Global) -> Result<Context> {
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
            "context {:?} is for {}, not for {url}; name another one: --context NAME",
            known.name,
            known.api_url
        ),
        (_, Some(url)) => {
            let host = url.split("://").nth(1).unwrap_or(url);
            Ok(Context {
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

fn settings(context: &Context, token: &str) -> Settings {
    Settings {
        ca_file: context.ca_file.clone(),
        default_project: context.default_project.clone(),
        token: Some(Secret::new(token)),
        ..Settings::new(&context.api_url)
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
            seconds: ADMIN_LIFE_S,
            nanos: 0,
        }),
        ..Default::default()
    };
    let made = client.tokens().create(request).await;
    Ok(made
        .context("the login is good, but gets no admin role")?
        .into_inner()
        .secret)
}

/// The caller's project, when there is just one.
async fn only_project(client: &Client) -> Option<String> {
    let request = ProjectServiceListRequest { query: None };
    let answer = client.projects().list(request).await.ok()?;
    match answer.into_inner().projects.as_slice() {
        [one] => Some(one.uuid.clone()),
        _ => None,
    }
}

async fn revoke(client: &Client, secret: &str) -> Result<()> {
    let id = token_id(secret).context("the token is not one of metalmesh")?;
    let query = TokenQuery {
        uuid: Some(id.clone()),
        ..Default::default()
    };
    let own = TokenServiceListRequest { query: Some(query) };
    // One that is over already needs no end.
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

/// The id that a token's text says.
fn token_id(secret: &str) -> Option<String> {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let claims = secret.split('.').nth(1)?;
    let claims: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some(claims.get("jti")?.as_str()?.to_owned())
}

/// Opens the browser where there may be one; the address was printed anyway.
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
