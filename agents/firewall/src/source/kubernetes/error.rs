use serde::Deserialize;

use proto_firewall::printable;

/// A reason why a request to an API server failed.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// The server was not reached, or the connection broke off.
    #[error("cannot reach the API server: {reason}; check the kubeconfig's server and its CA")]
    Unreachable {
        /// The causes, in one line.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("the API server does not answer in time")]
    Timeout,
    /// The credential is not accepted.
    #[error("the API server does not accept the credential; renew the kubeconfig")]
    Unauthenticated,
    /// The credential may not do it.
    #[error("the credential may not {what}; grant it to the kubeconfig's user ({message})")]
    Denied {
        /// The attempt.
        what: String,
        /// The server's words.
        message: String,
    },
    /// There is no such object, or the server does not know its kind.
    #[error("there is nothing to {what}; {message}")]
    NotFound {
        /// The attempt.
        what: String,
        /// The remedy.
        message: String,
    },
    /// The state that was asked for is not kept any more.
    #[error("the API server has forgotten the state that was watched")]
    Expired,
    /// The server refused the request.
    #[error("the API server refuses to {what}: status {status}: {message}")]
    Refused {
        /// The attempt.
        what: String,
        /// Status of HTTP.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// An answer is larger than its bound, or there are too many objects.
    #[error("{what}: more than {limit}; remove some")]
    TooLarge {
        /// The thing that there is too much of.
        what: String,
        /// The bound, with its unit.
        limit: String,
    },
    /// An answer cannot be decoded.
    #[error("an answer of the API server cannot be read: {reason}")]
    Malformed {
        /// The reason.
        reason: String,
    },
}

/// The words of an API server about a failure.
#[derive(Debug, Default, Deserialize)]
struct StatusObject {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: u16,
}

impl KubernetesError {
    /// The error of an answer with a status of HTTP and a body.
    pub(super) fn of_status(what: &str, status: u16, body: &[u8]) -> Self {
        // A body that is no Status still has a status of HTTP.
        let words: StatusObject = serde_json::from_slice(body).unwrap_or(StatusObject {
            message: String::new(),
            code: status,
        });
        let message = printable(&words.message);
        let what = what.to_owned();
        match status {
            401 => Self::Unauthenticated,
            403 => Self::Denied { what, message },
            404 => Self::NotFound {
                what,
                message: "install its CRD, or create it".to_owned(),
            },
            410 => Self::Expired,
            status => Self::Refused {
                what,
                status,
                message,
            },
        }
    }

    /// The error of an event of type `ERROR`.
    pub(super) fn of_event(what: &str, object: &[u8]) -> Self {
        let code = serde_json::from_slice(object).map_or(500, |status: StatusObject| status.code);
        Self::of_status(what, code, object)
    }

    pub(super) fn malformed(error: &serde_json::Error) -> Self {
        Self::Malformed {
            reason: printable(&error.to_string()),
        }
    }
}
