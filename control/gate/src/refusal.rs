//! Maps errors to gRPC statuses. Causes go to the log, codes of the catalogue to the caller.

use std::collections::BTreeMap;
use std::time::Duration;

use control_authz::Denied;
use control_state::{ErrorCode, ErrorKind, StateError};
use control_store::{ProposeError, StoreError};
use prost::Message;
use proto_public::Violations;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::wire_violations::{WireViolation, WireViolations};

/// Domain of the catalogue's codes in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "metalmesh.dev";

/// `google.rpc.ErrorInfo`. Not that of tonic-types, whose map has no order: equal refusals are equal
/// bytes, so that callers and tests can compare them.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

/// The status of a request that violates validation rules: every field and its rule.
pub fn of_violations(violations: &Violations) -> Status {
    let texts: Vec<String> = violations
        .iter()
        .map(|violation| format!("{}: {}", violation.field, violation.message))
        .collect();
    let details = WireViolations {
        violations: violations.iter().map(WireViolation::of).collect(),
    };
    let message = format!("validation error: {}", texts.join("; "));
    with_detail(
        Code::InvalidArgument,
        message,
        "buf.validate.Violations",
        details.encode_to_vec(),
    )
}

/// The status of a state error, with code, object and hint as details.
pub fn of_state(error: StateError) -> Status {
    let code = grpc_code(error.kind());
    if error.code == ErrorCode::Internal {
        tracing::error!(error = %error, "a call failed with an internal error");
    }
    let mut metadata = BTreeMap::new();
    if !error.object.is_empty() {
        metadata.insert("object".to_owned(), error.object.clone());
    }
    if !error.hint.is_empty() {
        metadata.insert("hint".to_owned(), error.hint.clone());
    }
    let info = ErrorInfo {
        reason: error.code.to_string(),
        domain: DOMAIN.to_owned(),
        metadata,
    };
    with_detail(
        code,
        error.to_string(),
        "google.rpc.ErrorInfo",
        info.encode_to_vec(),
    )
}

/// The status of a rate-limited call, with the time to retry after.
pub fn too_often(text: &str, wait_ms: u64) -> Status {
    let hint = format!("try again in {wait_ms} ms");
    let refused = of_state(StateError::new(ErrorCode::TooMany, text).hint(hint));
    let delay = Duration::from_millis(wait_ms);
    let retry = pb::RetryInfo {
        retry_delay: Some(prost_types::Duration {
            seconds: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
            // Below one second, so far within `i32`.
            nanos: delay.subsec_nanos().cast_signed(),
        }),
    };
    let mut status = pb::Status::decode(refused.details()).unwrap_or_default();
    status.details.push(prost_types::Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
        value: retry.encode_to_vec(),
    });
    let details = status.encode_to_vec().into();
    Status::with_details(refused.code(), refused.message(), details)
}

/// A status with one detail.
pub fn with_detail(code: Code, message: String, kind: &str, value: Vec<u8>) -> Status {
    let detail = prost_types::Any {
        type_url: format!("type.googleapis.com/{kind}"),
        value,
    };
    let status = pb::Status {
        code: code.into(),
        message: message.clone(),
        details: vec![detail],
    };
    Status::with_details(code, message, status.encode_to_vec().into())
}

/// The status of a proposal that was rejected or whose outcome is unknown.
pub fn of_propose(error: ProposeError<StateError>) -> Status {
    match error {
        ProposeError::Rejected(error) => of_state(error),
        ProposeError::Store(error) => of_store(error),
    }
}

/// The status of a store error.
pub fn of_store(error: StoreError) -> Status {
    tracing::warn!(error = %error, "the store could not answer");
    let code = match error {
        StoreError::NotLeader { .. }
        | StoreError::NoQuorum
        | StoreError::ShutDown
        | StoreError::OutcomeUnknown { .. } => ErrorCode::Unavailable,
        StoreError::Busy { .. } => ErrorCode::TooMany,
        // Not `TooMany`: a retry of the same request would be as large.
        StoreError::TooLarge { .. } => ErrorCode::InvalidField,
        StoreError::Fatal(_) => ErrorCode::Internal,
    };
    let message = match error {
        StoreError::NotLeader { .. } => "this node does not lead",
        StoreError::NoQuorum => "no majority of the control nodes answered",
        StoreError::ShutDown => "this node shuts down",
        StoreError::OutcomeUnknown { .. } => "the outcome of the change is not known",
        StoreError::Busy { .. } => "too many changes wait already",
        StoreError::TooLarge { .. } => "request makes a change that is larger than one may be",
        StoreError::Fatal(_) => "the store stopped",
    };
    let error = match code {
        ErrorCode::TooMany => StateError::new(code, message).hint("try again in a moment"),
        ErrorCode::InvalidField => StateError::new(code, message).hint("ask for less at a time"),
        _ => StateError::new(code, message),
    };
    of_state(error)
}

/// The status of a call that authorisation denied.
pub fn of_denied(denied: Denied) -> Status {
    of_state(denied.into())
}

/// The status of a request with an invalid field.
pub fn invalid(field: &str, rule: impl std::fmt::Display) -> Status {
    of_state(StateError::invalid(field, rule))
}

/// The status of a refusal with this code and message.
pub fn refused(code: ErrorCode, message: impl Into<String>) -> Status {
    of_state(StateError::new(code, message))
}

fn grpc_code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidArgument => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::FailedPrecondition => Code::FailedPrecondition,
        ErrorKind::Aborted => Code::Aborted,
        ErrorKind::ResourceExhausted => Code::ResourceExhausted,
        ErrorKind::PermissionDenied => Code::PermissionDenied,
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::DeadlineExceeded => Code::DeadlineExceeded,
        ErrorKind::Unimplemented => Code::Unimplemented,
        ErrorKind::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_code_object_and_hint() {
        let status = of_state(StateError::not_found("size", "n1"));
        assert_eq!(status.code(), Code::NotFound);
        assert!(
            status
                .message()
                .starts_with("MM-1001 size \"n1\" was not found")
        );
        let decoded = pb::Status::decode(status.details()).unwrap();
        let info = ErrorInfo::decode(decoded.details[0].value.as_slice()).unwrap();
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            ("MM-1001", DOMAIN)
        );
        assert_eq!(info.metadata["object"], "size/n1");
    }

    #[test]
    fn what_is_too_large_is_not_to_be_tried_again() {
        let status = of_store(StoreError::TooLarge { bytes: 3, max: 2 });
        assert_eq!(status.code(), Code::InvalidArgument);
        let busy = of_store(StoreError::Busy { waiting: 1 });
        assert_eq!(busy.code(), Code::ResourceExhausted);
    }

    #[test]
    fn the_inside_stays_inside() {
        let status = of_store(StoreError::Fatal("/var/lib/x: disk is gone".into()));
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("disk"));
    }
}
