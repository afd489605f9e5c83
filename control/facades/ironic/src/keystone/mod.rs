//! The calls of Keystone that Ironic's clients make.

use std::net::SocketAddr;
use std::sync::Arc;

use control_gate::ServiceContext;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::answer::IronicAnswer;
use crate::error::IronicError;

/// A call of Keystone, which needs no caller: it makes one.
#[derive(Debug)]
pub(crate) struct IdentityRequest<'a> {
    /// The state and its time.
    pub(crate) core: &'a Arc<ServiceContext>,
    /// Name of the project whose services have rights of the site.
    pub(crate) service_project: Option<&'a str>,
    /// Address of the facade without a slash at its end, for the catalogue.
    pub(crate) base: &'a str,
    /// Verb of HTTP.
    pub(crate) verb: &'a Method,
    /// Path below `/v3`; empty for the version itself.
    pub(crate) path: &'a str,
    /// The head.
    pub(crate) headers: &'a HeaderMap,
    /// The body; `Null` if there is none.
    pub(crate) body: &'a Value,
    /// Address of the caller.
    pub(crate) peer: Option<SocketAddr>,
}

/// Answers a call.
///
/// # Errors
/// 401 for a credential that is not valid, 404 for calls that no client makes.
pub(crate) async fn answer(_request: &IdentityRequest<'_>) -> Result<IronicAnswer, IronicError> {
    Err(IronicError::no_route())
}
