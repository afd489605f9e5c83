//! Pages for logins that failed.

use bytes::Bytes;
use http::{Response, StatusCode};
use tonic::{Code, Status};

use crate::page::Page;
use crate::provider::ProviderError;

/// The page for a flow that another browser started, that is too old, or that is finished.
pub(crate) fn over() -> Response<Bytes> {
    let text = "This login was begun in another browser or too long ago. Begin again: metalmesh \
                login.";
    Page::text(StatusCode::BAD_REQUEST, "Begin again", text).answer(None)
}

/// The page for a failure of the identity provider. The log has the cause.
pub(crate) fn provider_failed(title: &'static str, error: &ProviderError) -> Response<Bytes> {
    tracing::warn!(error = %error, "the provider of the logins failed");
    let (status, text) = match error {
        ProviderError::Unverified => (
            StatusCode::FORBIDDEN,
            "The provider has not verified your mail address.",
        ),
        _ => (
            StatusCode::BAD_GATEWAY,
            "The provider of the logins cannot be used now. The server's log says why.",
        ),
    };
    Page::text(status, title, text).answer(None)
}

/// The page for a failure of the server, with the reason only if the user can act on it.
pub(crate) fn failed(status: &Status) -> Response<Bytes> {
    tracing::warn!(error = %status, "a login failed");
    let text = match status.code() {
        Code::FailedPrecondition => status.message(),
        _ => "The server cannot do it now. Try again in a moment.",
    };
    Page::text(StatusCode::SERVICE_UNAVAILABLE, "Not now", text).answer(None)
}

/// The page for a system without randomness.
pub(crate) fn broken() -> Response<Bytes> {
    failed(&Status::internal("no randomness"))
}
