//! Outbound HTTP of control and agents: the client and the TLS trust for login providers, image
//! stores, collectors of traces, targets of the audit export and releases of agents; and the addresses
//! that are public.
//!
//! Invariants:
//! - the caller chooses the redirect policy of each client; there is no default;
//! - [`body`] never keeps more bytes of an answer than its caller's bound;
//! - with a CA given, only certificates of that CA are trusted, not those of the system;
//! - [`reason`] leaves the URL out of an error, because a URL may contain a password.

mod address;
mod trust;

use base_runtime::Chain;
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, Response};

pub use address::{is_for_private_use, is_public, is_special};
pub use trust::{TrustError, trusting};

/// The reason why the body of an answer was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection was lost or timed out before the end of the body.
    #[error("the answer broke off")]
    Broken(#[source] reqwest::Error),
    /// The body exceeds the bound.
    #[error("the answer is too long")]
    TooLong,
}

/// A client builder, for the caller to configure further. `ca` is a PEM bundle of the only trusted
/// authorities; `None` means the authorities of the system.
///
/// # Errors
/// The PEM cannot be read.
pub fn client(ca: Option<&[u8]>, redirects: Policy) -> reqwest::Result<ClientBuilder> {
    let client = reqwest::Client::builder().redirect(redirects);
    Ok(match ca {
        Some(pem) => client.tls_certs_only(Certificate::from_pem_bundle(pem)?),
        None => client,
    })
}

/// Reads the whole body of an answer, at most `bytes_max` bytes.
///
/// # Errors
/// [`BodyError::TooLong`] if the body is longer, [`BodyError::Broken`] if it ends early.
pub async fn body(answer: &mut Response, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    // The bound is checked per chunk and not by Content-Length: a chunked answer has no length, and
    // a server may announce a wrong one.
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + piece.len() > bytes_max {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error with its causes in one line, without the URL, which may contain a password.
pub fn reason(error: reqwest::Error) -> String {
    Chain(&error.without_url()).to_string()
}
