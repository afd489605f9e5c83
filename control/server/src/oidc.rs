//! The section `[oidc]`: the provider by which users log in.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use control_login::ProviderSettings;
use serde::Deserialize;

/// The section `[oidc]` as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OidcSection {
    issuer: Option<String>,
    client_id: Option<String>,
    client_secret_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    url: Option<String>,
    user_claim: Option<String>,
}

/// The checked section `[oidc]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OidcConfig {
    issuer: String,
    client_id: String,
    client_secret_file: PathBuf,
    ca_file: Option<PathBuf>,
    pub(crate) url: url::Url,
    user_claim: String,
}

impl OidcSection {
    /// Checks the section. `None` means that there is no provider.
    pub(crate) fn check(self) -> Result<Option<OidcConfig>> {
        let Some(issuer) = self.issuer else {
            ensure!(
                self.client_id.is_none() && self.client_secret_file.is_none() && self.url.is_none(),
                "oidc.issuer: is missing; name the provider, for example issuer = \
                 \"https://id.example\""
            );
            return Ok(None);
        };
        check_url("oidc.issuer", &issuer)?;
        let url = self.url.context(
            "oidc.url: is missing; name where browsers reach this API, for example url = \
             \"https://mesh.example\"",
        )?;
        Ok(Some(OidcConfig {
            url: check_url("oidc.url", &url)?,
            issuer,
            client_id: self
                .client_id
                .context("oidc.client_id: is missing; the provider gave it to this client")?,
            client_secret_file: self.client_secret_file.context(
                "oidc.client_secret_file: is missing; the file holds the secret that the \
                 provider gave to this client",
            )?,
            ca_file: self.ca_file,
            user_claim: self.user_claim.unwrap_or_else(|| "email".to_owned()),
        }))
    }
}

/// Checks a URL that tokens and secrets are sent to: it must be encrypted, or on this machine.
fn check_url(field: &str, text: &str) -> Result<url::Url> {
    let url = url::Url::parse(text).ok().filter(url::Url::has_host);
    let url =
        url.with_context(|| format!("{field}: {text:?} is not a URL like https://x.example"))?;
    let is_loopback = match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    ensure!(
        url.scheme() == "https" || url.scheme() == "http" && is_loopback,
        "{field}: {text:?} must begin with https://"
    );
    Ok(url)
}

impl OidcConfig {
    /// Reads the files.
    pub(crate) fn settings(&self) -> Result<ProviderSettings> {
        let path = &self.client_secret_file;
        let named = || format!("oidc.client_secret_file: cannot read {}", path.display());
        let secret = std::fs::read_to_string(path).with_context(named)?;
        let secret = secret.trim();
        ensure!(
            !secret.is_empty(),
            "oidc.client_secret_file: {} is empty",
            path.display()
        );
        let ca = self.ca_file.as_ref().map(|path| {
            std::fs::read(path)
                .with_context(|| format!("oidc.ca_file: cannot read {}", path.display()))
        });
        Ok(ProviderSettings {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: secret.to_owned(),
            ca: ca.transpose()?,
            url: self.url.clone(),
            user_claim: self.user_claim.clone(),
        })
    }
}
