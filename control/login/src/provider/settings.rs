//! Settings of an OpenID Connect provider.

use url::Url;

/// Settings of the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The issuer: its URL, as its tokens name it.
    pub issuer: String,
    /// Our client id at the provider.
    pub client_id: String,
    /// Our client secret at the provider.
    pub client_secret: String,
    /// PEM of the authority that signed its certificate. `None` means the authorities of the system.
    pub ca: Option<Vec<u8>>,
    /// URL of this API for browsers.
    pub url: Url,
    /// The claim that becomes the login.
    pub user_claim: String,
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
