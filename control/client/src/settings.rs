//! The server and the credentials of a connection.

use std::path::{Path, PathBuf};

use crate::context::{SecretText, ServerContext, ServerContexts};
use crate::error::ClientError;

/// Environment variable with the server's URL. It takes precedence over the context.
pub const ENV_URL: &str = "METALMESH_API_URL";
/// Environment variable with the path of the token's file. It takes precedence over the context.
pub const ENV_TOKEN_FILE: &str = "METALMESH_TOKEN_FILE";

/// Name of [`ENV_URL`] in the published clients of this API.
const ENV_URL_OTHERS: &str = "METAL_APIV2_URL";
/// Name of [`ENV_TOKEN_FILE`] in the published clients of this API.
const ENV_TOKEN_FILE_OTHERS: &str = "METAL_APIV2_TOKEN_FILE";
/// Environment variable with the token itself, in the published clients of this API.
const ENV_TOKEN_OTHERS: &str = "METAL_APIV2_TOKEN";

/// The settings of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// URL of the server.
    pub api_url: String,
    /// Bearer token. `None` means only public methods answer.
    pub token: Option<SecretText>,
    /// File with the authority of the server's certificate, PEM. `None` means the system's ones.
    pub ca_file: Option<PathBuf>,
    /// Default project of commands.
    pub default_project: Option<String>,
    /// The context's token that is not sent, because it is for another server.
    pub kept_back: Option<KeptBack>,
    /// `true` if calls change nothing. A server without support for dry runs refuses such calls.
    pub dry_run: bool,
}

/// A token that is not sent, because the settings name another server than its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBack {
    /// Name of the context.
    pub context: String,
    /// The server that its token is for.
    pub api_url: String,
}

impl ClientSettings {
    /// Settings of a server without a token.
    pub fn new(api_url: impl Into<String>) -> Self {
        Self {
            api_url: api_url.into(),
            token: None,
            ca_file: None,
            default_project: None,
            kept_back: None,
            dry_run: false,
        }
    }

    /// Returns the settings with a token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(SecretText::new(token));
        self
    }

    /// Merges flags, environment and the named or current context, in this order of precedence.
    ///
    /// A context's token is sent to a server that a flag or the environment names only if scheme, host
    /// and port are those of the context. Otherwise [`ClientSettings::kept_back`] names the context.
    ///
    /// # Errors
    /// No server is named, the context does not exist, or a token file cannot be read.
    pub fn resolve(
        contexts: &ServerContexts,
        context: Option<&str>,
        api_url: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ClientError> {
        let get = |name: &str| environment(name).filter(|value| !value.is_empty());
        let chosen = match context {
            Some(name) => Some(contexts.get(name)?),
            None => contexts.current(),
        };
        let given = api_url.map(str::to_owned).or_else(|| {
            context
                .is_none()
                .then(|| get(ENV_URL).or_else(|| get(ENV_URL_OTHERS)))?
        });
        let from_environment = || match context {
            Some(_) => Ok(None),
            None => environment_token(&get),
        };
        let Some(api_url) = given else {
            let chosen = chosen.ok_or(ClientError::NoServer)?;
            let token = match from_environment()? {
                Some(token) => Some(token),
                None => context_token(chosen)?,
            };
            return Ok(Self {
                token,
                ..Self::of(chosen, chosen.api_url.clone())
            });
        };
        let settings = match chosen {
            Some(chosen) => Self::of(chosen, api_url),
            None => Self::new(api_url),
        };
        match (from_environment()?, chosen) {
            (Some(token), _) => Ok(Self {
                token: Some(token),
                ..settings
            }),
            (None, Some(chosen)) => settings.with_token_of(chosen),
            (None, None) => Ok(settings),
        }
    }

    /// Returns the settings with the context's token, if the context is for this server.
    fn with_token_of(mut self, context: &ServerContext) -> Result<Self, ClientError> {
        if origin(&self.api_url).is_some_and(|ours| origin(&context.api_url) == Some(ours)) {
            self.token = context_token(context)?;
        } else if context.token_file.is_some() || context.api_token.is_some() {
            self.kept_back = Some(KeptBack {
                context: context.name.clone(),
                api_url: context.api_url.clone(),
            });
        }
        Ok(self)
    }

    fn of(context: &ServerContext, api_url: String) -> Self {
        Self {
            api_url,
            token: None,
            ca_file: context.ca_file.clone(),
            default_project: context.default_project.clone(),
            kept_back: None,
            dry_run: false,
        }
    }
}

/// Scheme, host and port of a URL. `None` if it is not a URL of HTTP.
fn origin(url: &str) -> Option<(String, String, u16)> {
    let url: http::Uri = url.parse().ok()?;
    let scheme = url.scheme_str()?.to_ascii_lowercase();
    let usual = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let port = url.port_u16().unwrap_or(usual);
    Some((scheme, url.host()?.to_ascii_lowercase(), port))
}

fn environment_token(
    get: &impl Fn(&str) -> Option<String>,
) -> Result<Option<SecretText>, ClientError> {
    if let Some(path) = get(ENV_TOKEN_FILE).or_else(|| get(ENV_TOKEN_FILE_OTHERS)) {
        return read_token(Path::new(&path)).map(Some);
    }
    Ok(get(ENV_TOKEN_OTHERS).map(SecretText::new))
}

fn context_token(context: &ServerContext) -> Result<Option<SecretText>, ClientError> {
    match (&context.token_file, &context.api_token) {
        (Some(path), _) => read_token(path).map(Some),
        (None, token) => Ok(token.clone()),
    }
}

/// Reads a token file, which must have one line of printable characters.
fn read_token(path: &Path) -> Result<SecretText, ClientError> {
    let text = std::fs::read_to_string(path).map_err(|source| ClientError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ClientError::Token(path.display().to_string()));
    }
    Ok(SecretText::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> ServerContexts {
        let context = |name: &str, url: &str| ServerContext {
            name: name.into(),
            api_url: url.into(),
            api_token: Some(SecretText::new(format!("token-{name}"))),
            token_file: None,
            ca_file: None,
            default_project: Some(format!("project-{name}")),
        };
        ServerContexts {
            current_context: Some("a".into()),
            previous_context: None,
            contexts: vec![context("a", "http://a:1"), context("b", "http://b:1")],
        }
    }

    fn resolved(
        context: Option<&str>,
        url: Option<&str>,
        environment: &[(&str, &str)],
    ) -> (String, Option<String>) {
        let get = |name: &str| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let settings = ClientSettings::resolve(&contexts(), context, url, get).unwrap();
        (
            settings.api_url,
            settings.token.map(|token| token.expose().to_owned()),
        )
    }

    #[test]
    fn precedence() {
        let url = |text: &str, token: Option<&str>| (text.to_owned(), token.map(str::to_owned));
        assert_eq!(
            resolved(None, None, &[]),
            url("http://a:1", Some("token-a"))
        );
        assert_eq!(
            resolved(Some("b"), None, &[]),
            url("http://b:1", Some("token-b"))
        );
        let foreign = [(ENV_URL, "http://c:1")];
        assert_eq!(resolved(None, None, &foreign), url("http://c:1", None));
        assert_eq!(
            resolved(None, Some("http://a:1"), &[]),
            url("http://a:1", Some("token-a"))
        );
        assert_eq!(
            resolved(None, Some("http://d:1"), &[]),
            url("http://d:1", None)
        );
        let both = [(ENV_URL_OTHERS, "http://c:1"), (ENV_TOKEN_OTHERS, "t")];
        assert_eq!(resolved(None, None, &both), url("http://c:1", Some("t")));
        assert_eq!(
            resolved(Some("b"), None, &both),
            url("http://b:1", Some("token-b"))
        );
    }

    #[test]
    fn a_token_is_for_one_origin() {
        for (context, url, is_same) in [
            ("http://a:1", "http://a:1/", true),
            ("http://a:1", "HTTP://A:1", true),
            ("http://a", "http://a:80", true),
            ("https://a/", "https://a:443", true),
            ("http://a:1", "https://a:1", false),
            ("http://a:1", "http://a:2", false),
            ("http://a:1", "http://b:1", false),
            ("http://a:1", "http://a:1@b:1", false),
            ("http://a:1", "http://a.b:1", false),
            ("https://a", "http://a:443", false),
            ("http://[::1]:1", "http://[::1]:1", true),
            ("http://a:1", "nonsense", false),
            ("nonsense", "nonsense", false),
        ] {
            let mut contexts = contexts();
            contexts.contexts[0].api_url = context.into();
            let settings = ClientSettings::resolve(&contexts, None, Some(url), |_| None).unwrap();
            assert_eq!(settings.token.is_some(), is_same, "{context} {url}");
            let kept_back = KeptBack {
                context: "a".into(),
                api_url: context.into(),
            };
            let expected = (!is_same).then_some(kept_back);
            assert_eq!(settings.kept_back, expected, "{context} {url}");
            let own = |name: &str| (name == ENV_TOKEN_OTHERS).then(|| "t".to_owned());
            let settings = ClientSettings::resolve(&contexts, None, Some(url), own).unwrap();
            assert_eq!(
                (settings.token.unwrap().expose(), settings.kept_back),
                ("t", None)
            );
        }
    }

    #[test]
    fn nothing_is_an_error_that_says_what_to_do() {
        let error =
            ClientSettings::resolve(&ServerContexts::default(), None, None, |_| None).unwrap_err();
        assert!(error.to_string().contains("metalmesh context add"));
    }
}
