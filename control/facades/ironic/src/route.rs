//! Routes: a verb and a path, the method that they stand for, and the handler.

use control_authz::FacadeMethod;
use futures::future::BoxFuture;
use http::Method;

use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::request::IronicCall;

/// The answer of a handler.
pub(crate) type HandlerFuture<'a> = BoxFuture<'a, Result<IronicAnswer, IronicError>>;

/// A route of a resource.
pub(crate) struct IronicRoute {
    /// Verb of HTTP.
    pub(crate) verb: Method,
    /// Path without `/v1`, such as `/nodes/{node}/states/power`. A part in braces is a parameter.
    pub(crate) path: &'static str,
    /// Microversion that introduced it, `1.since`. 0 means every one.
    pub(crate) since: u16,
    /// The method of the facade's table.
    pub(crate) method: &'static FacadeMethod,
    /// The handler.
    pub(crate) run: for<'a> fn(&'a IronicCall<'a>) -> HandlerFuture<'a>,
}

impl std::fmt::Debug for IronicRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.path)
    }
}
