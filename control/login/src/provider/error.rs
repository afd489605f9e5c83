//! The reasons for which a login through the provider fails.

/// The reason why a login through the provider fails.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProviderError {
    /// The provider does not answer, or its answer cannot be used.
    #[error("{what}: {reason}")]
    Unreachable {
        /// The resource that was requested.
        what: &'static str,
        /// The failure.
        reason: String,
    },
    /// The provider names another issuer.
    #[error("the provider calls itself {0:?}, which is not oidc.issuer")]
    Issuer(String),
    /// The id token is not valid.
    #[error("{0}")]
    Token(String),
    /// The id token lacks the claim that becomes the login.
    #[error("the id token has no {0:?}; see oidc.user_claim")]
    NoClaim(String),
    /// The mail address is not verified: every user of the provider can claim it.
    #[error("the provider has not verified the mail address")]
    Unverified,
    /// The HTTP client cannot be made.
    #[error("oidc.ca_file: {0}")]
    Client(String),
}
