//! The section `[login]`: log-in of users.

use anyhow::{Context as _, Result, ensure};
use control_login::{LoginSettings, ProviderSettings, Redirects};
use serde::Deserialize;

use crate::oidc::{OidcConfig, OidcSection};

/// Default life of a log-in's token, hours, as in the published servers.
const HOURS: u64 = 8;
/// Maximum of `login.hours`. A larger value is refused.
const HOURS_MAX: u64 = 24;
/// Milliseconds of an hour.
const HOUR_MS: u64 = 3_600_000;

/// The section `[login]` as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LoginSection {
    redirects: Vec<String>,
    hours: Option<u64>,
}

/// The checked sections `[login]` and `[oidc]`. The files that they name are read at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginConfig {
    redirects: Redirects,
    token_life_ms: u64,
    provider: Option<OidcConfig>,
}

impl LoginSection {
    /// Checks both sections.
    pub(crate) fn check(self, oidc: OidcSection) -> Result<LoginConfig> {
        let hours = self.hours.unwrap_or(HOURS);
        ensure!(
            (1..=HOURS_MAX).contains(&hours),
            "login.hours: must be in 1..={HOURS_MAX}; leave it out for {HOURS}"
        );
        Ok(LoginConfig {
            redirects: Redirects::new(&self.redirects).context("login.redirects")?,
            token_life_ms: hours * HOUR_MS,
            provider: oidc.check()?,
        })
    }
}

impl LoginConfig {
    /// Reads the files. `is_tls` is `true` if the API itself speaks HTTPS.
    pub(crate) fn settings(&self, is_tls: bool) -> Result<LoginSettings> {
        let provider = self
            .provider
            .as_ref()
            .map(OidcConfig::settings)
            .transpose()?;
        // A proxy may terminate TLS in front of this node. Cookies must be marked `Secure` then too.
        let behind_tls = |provider: &ProviderSettings| provider.url.scheme() == "https";
        Ok(LoginSettings {
            redirects: self.redirects.clone(),
            token_life_ms: self.token_life_ms,
            is_secure: is_tls || provider.as_ref().is_some_and(behind_tls),
            provider,
        })
    }
}
