//! Refusals, in the shapes that clients of OpenStack read.

use http::StatusCode;
use serde_json::{Value, json};
use tonic::{Code, Status};

/// Shape of an error's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorShape {
    /// Ironic's: a JSON text within JSON.
    Baremetal,
    /// Keystone's, which Ironic's middleware uses for 401 as well.
    Identity,
    /// Neutron's.
    Network,
}

/// A refusal of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IronicError {
    /// Status of HTTP.
    pub(crate) status: StatusCode,
    /// The reason for people.
    pub(crate) text: String,
}

impl IronicError {
    /// A refusal with this status.
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }

    /// 400: the request is malformed, or does not fit the state of the object.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// 401: the caller did not say who it is.
    pub(crate) fn unauthenticated() -> Self {
        let text = "The request you have made requires authentication.";
        Self::new(StatusCode::UNAUTHORIZED, text)
    }

    /// 403: the policy's rule refuses the call.
    pub(crate) fn forbidden(rule: &str) -> Self {
        let text = format!("Access was denied to the following resource: {rule}");
        Self::new(StatusCode::FORBIDDEN, text)
    }

    /// 404: there is no such object, or the caller may not see it. `kind` begins with a capital.
    pub(crate) fn not_found(kind: &str, ident: &str) -> Self {
        let text = format!("{kind} {ident} could not be found.");
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// 404: there is no such path in this microversion.
    pub(crate) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "The resource could not be found.")
    }

    /// 409: the object is in a state, or was changed meanwhile, that does not allow the call.
    pub(crate) fn conflict(text: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, text)
    }

    /// 400 as Ironic says it of an interface that the driver does not have.
    pub(crate) fn unsupported(driver: &str, interface: &str) -> Self {
        Self::invalid(format!(
            "Driver {driver} does not support {interface} (disabled or not implemented)."
        ))
    }

    /// The body in this shape.
    pub(crate) fn body(&self, shape: ErrorShape) -> Value {
        let code = self.status.as_u16();
        let title = self.status.canonical_reason().unwrap_or("Error");
        let text = self.text.as_str();
        let shape = match self.status {
            StatusCode::UNAUTHORIZED => ErrorShape::Identity,
            _ => shape,
        };
        match shape {
            ErrorShape::Identity => {
                json!({ "error": { "code": code, "title": title, "message": text } })
            }
            ErrorShape::Network => {
                json!({ "NeutronError": { "type": title, "message": text, "detail": "" } })
            }
            ErrorShape::Baremetal => {
                let is_server = self.status.is_server_error();
                let fault = json!({
                    "faultcode": if is_server { "Server" } else { "Client" },
                    "faultstring": text,
                    "debuginfo": null,
                });
                json!({ "error_message": fault.to_string() })
            }
        }
    }

    /// The code under which the call is recorded.
    pub(crate) fn code(&self) -> Code {
        match self.status {
            StatusCode::BAD_REQUEST | StatusCode::NOT_ACCEPTABLE => Code::InvalidArgument,
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            StatusCode::NOT_FOUND => Code::NotFound,
            StatusCode::CONFLICT => Code::FailedPrecondition,
            StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
            StatusCode::NOT_IMPLEMENTED => Code::Unimplemented,
            StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
            StatusCode::GATEWAY_TIMEOUT => Code::DeadlineExceeded,
            _ => Code::Internal,
        }
    }
}

impl From<Status> for IronicError {
    /// A refusal of the gate or the state. Clients repeat 409 and 503 by themselves.
    fn from(status: Status) -> Self {
        let http = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => StatusCode::CONFLICT,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Code::Ok | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self::new(http, status.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_those_that_clients_read() {
        let error = IronicError::not_found("Node", "kn1");
        let body = error.body(ErrorShape::Baremetal);
        let inner: Value = serde_json::from_str(body["error_message"].as_str().unwrap()).unwrap();
        assert_eq!(inner["faultstring"], "Node kn1 could not be found.");
        assert_eq!(inner["faultcode"], "Client");
        assert!(inner["debuginfo"].is_null());
        let refused = IronicError::unauthenticated().body(ErrorShape::Baremetal);
        assert_eq!(refused["error"]["code"], 401);
        let of_network = error.body(ErrorShape::Network);
        assert_eq!(of_network["NeutronError"]["type"], "Not Found");
    }

    #[test]
    fn statuses_of_the_state_become_those_of_http() {
        for (code, status) in [
            (Code::Aborted, 409),
            (Code::FailedPrecondition, 409),
            (Code::NotFound, 404),
            (Code::Unavailable, 503),
            (Code::Internal, 500),
        ] {
            let error = IronicError::from(Status::new(code, "text"));
            assert_eq!(error.status.as_u16(), status, "{code:?}");
            assert_eq!(error.text, "text");
        }
    }
}
