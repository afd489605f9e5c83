//! The section `[vpn]` of the configuration.

use std::path::PathBuf;

use reqwest::Url;
use serde::Deserialize;

use crate::VpnSettingsError;

/// The section `[vpn]` as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadscaleSection {
    pub(super) url: Option<String>,
    pub(super) address: Option<String>,
    pub(super) api_key_file: Option<PathBuf>,
}

/// The checked section `[vpn]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadscaleSettings {
    pub(super) url: Url,
    pub(super) address: String,
    pub(super) api_key_file: PathBuf,
}

impl HeadscaleSection {
    /// Checks the section. `None` means that there is no VPN.
    ///
    /// # Errors
    /// The first fault; the message names the field.
    pub fn check(self) -> Result<Option<HeadscaleSettings>, VpnSettingsError> {
        let Some(text) = self.url else {
            if self.address.is_some() || self.api_key_file.is_some() {
                return Err(VpnSettingsError::UrlMissing);
            }
            return Ok(None);
        };
        let url = Url::parse(&text)?;
        // Checked before any error that quotes the URL: the message would contain the password.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(VpnSettingsError::UrlWithCredentials);
        }
        let is_good = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_good || url.cannot_be_a_base() {
            return Err(VpnSettingsError::UrlUnusable(text));
        }
        let api_key_file = self.api_key_file.ok_or(VpnSettingsError::KeyFileMissing)?;
        Ok(Some(HeadscaleSettings {
            address: self.address.unwrap_or(text),
            url,
            api_key_file,
        }))
    }
}
