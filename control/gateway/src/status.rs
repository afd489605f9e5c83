//! Refusals on their way to an agent.

use control_pki::PkiError;
use control_state::{ErrorKind, StateError};
use control_store::{MembershipError, ProposeError, StoreError};
use proto_link::{Code, LinkStatus};
use proto_types::ParseError;
use tracing::{error, warn};

pub(crate) fn code(kind: ErrorKind) -> Code {
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

pub(crate) fn refused(e: &StateError) -> LinkStatus {
    let hint = if e.hint.is_empty() {
        String::new()
    } else {
        format!("; {}", e.hint)
    };
    LinkStatus::new(code(e.kind()), format!("{}{hint}", e.message)).with_catalogue(e.code.number())
}

/// All but a fatal error pass: the agent tries again, perhaps at another node.
pub(crate) fn store(e: &StoreError) -> LinkStatus {
    match e {
        StoreError::TooLarge { .. } => LinkStatus::invalid_argument("the report is too large"),
        StoreError::Fatal(_) => {
            error!(error = %e, "the store failed");
            LinkStatus::unavailable("control cannot answer now")
        }
        other => LinkStatus::unavailable(other.to_string()),
    }
}

pub(crate) fn propose(e: ProposeError<StateError>) -> LinkStatus {
    match e {
        ProposeError::Rejected(e) => refused(&e),
        ProposeError::Store(e) => store(&e),
    }
}

pub(crate) fn pki(e: PkiError) -> LinkStatus {
    match e {
        PkiError::Refused(e) => refused(&e),
        PkiError::Store(e) => store(&e),
        PkiError::Identity(e) => {
            warn!(error = %e, "unusable request or certificate");
            LinkStatus::invalid_argument(e.to_string())
        }
        other => {
            error!(error = %other, "the certificate authority failed");
            LinkStatus::internal("no certificate could be made")
        }
    }
}

pub(crate) fn membership(e: MembershipError) -> LinkStatus {
    match e {
        MembershipError::Store(e) => store(&e),
        e @ (MembershipError::InProgress | MembershipError::NotTaken { .. }) => {
            LinkStatus::unavailable(e.to_string())
        }
        e => LinkStatus::new(Code::FailedPrecondition, e.to_string()),
    }
}

pub(crate) fn parse(e: ParseError) -> LinkStatus {
    LinkStatus::invalid_argument(e.to_string())
}
