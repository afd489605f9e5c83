//! The end of an answer: its status and trailers.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE};
use http::{HeaderMap, HeaderName};
use tonic::{Code, Status};

/// Header and trailer of the gRPC status.
pub(super) const GRPC_STATUS: &str = "grpc-status";

/// The end of an answer.
#[derive(Debug, Clone)]
pub(super) struct End {
    /// The status.
    pub(super) outcome: Result<(), Status>,
    /// Trailers that the handler set.
    pub(super) trailers: HeaderMap,
}

impl End {
    /// An end with a status of the front, without trailers of a handler.
    pub(super) fn error(status: Status) -> Self {
        Self {
            outcome: Err(status),
            trailers: HeaderMap::new(),
        }
    }

    /// Reads the end from the trailers of an answer, or from its headers if it has no body.
    pub(super) fn of_trailers(trailers: HeaderMap) -> Self {
        let outcome = match Status::from_header_map(&trailers) {
            Some(status) if status.code() == Code::Ok => Ok(()),
            Some(status) => Err(status),
            None => Err(no_status()),
        };
        Self {
            outcome,
            trailers: handler_headers(trailers),
        }
    }
}

/// Headers or trailers that the handler set, without those of the transport.
pub(super) fn handler_headers(mut headers: HeaderMap) -> HeaderMap {
    const OF_GRPC: [&str; 5] = [
        GRPC_STATUS,
        "grpc-message",
        "grpc-status-details-bin",
        "grpc-encoding",
        "grpc-accept-encoding",
    ];
    for name in [CONTENT_TYPE, CONTENT_LENGTH, DATE] {
        headers.remove(name);
    }
    for name in OF_GRPC.map(HeaderName::from_static) {
        headers.remove(name);
    }
    headers
}

/// The status of an answer that ended without one.
pub(super) fn no_status() -> Status {
    Status::internal("the method ended without a status")
}
