//! Answers of handlers.

use http::StatusCode;
use serde_json::Value;

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IronicAnswer {
    /// Status of HTTP.
    pub(crate) status: StatusCode,
    /// Value of the header `Location`. `None` means none.
    pub(crate) location: Option<String>,
    /// Value of the header `X-Subject-Token`. `None` means none.
    pub(crate) subject_token: Option<String>,
    /// The body. `None` means none.
    pub(crate) body: Option<Value>,
}

impl IronicAnswer {
    fn new(status: StatusCode, body: Option<Value>) -> Self {
        Self {
            status,
            location: None,
            subject_token: None,
            body,
        }
    }

    /// 200 with an object.
    pub(crate) fn ok(body: Value) -> Self {
        Self::new(StatusCode::OK, Some(body))
    }

    /// 201 with the object that was made, and its address.
    pub(crate) fn created(body: Value, location: String) -> Self {
        Self {
            location: Some(location),
            ..Self::new(StatusCode::CREATED, Some(body))
        }
    }

    /// 202: the change goes on. `location` tells where to look for its end.
    pub(crate) fn accepted(location: Option<String>) -> Self {
        Self {
            location,
            ..Self::new(StatusCode::ACCEPTED, None)
        }
    }

    /// 204.
    pub(crate) fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, None)
    }

    /// The same answer with a token of Keystone in its head.
    pub(crate) fn with_subject_token(self, token: String) -> Self {
        Self {
            subject_token: Some(token),
            ..self
        }
    }
}
