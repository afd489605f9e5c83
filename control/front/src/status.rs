//! Statuses in the form of each protocol.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use prost::Message;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::pb;

use super::end::{End, GRPC_STATUS};

/// Connect's name of a code and the HTTP status of a unary error with it.
pub(super) fn connect_code(code: Code) -> (&'static str, StatusCode) {
    let (name, http) = match code {
        Code::Ok => ("ok", 200),
        Code::Cancelled => ("canceled", 499),
        Code::Unknown => ("unknown", 500),
        Code::InvalidArgument => ("invalid_argument", 400),
        Code::DeadlineExceeded => ("deadline_exceeded", 504),
        Code::NotFound => ("not_found", 404),
        Code::AlreadyExists => ("already_exists", 409),
        Code::PermissionDenied => ("permission_denied", 403),
        Code::ResourceExhausted => ("resource_exhausted", 429),
        Code::FailedPrecondition => ("failed_precondition", 400),
        Code::Aborted => ("aborted", 409),
        Code::OutOfRange => ("out_of_range", 400),
        Code::Unimplemented => ("unimplemented", 501),
        Code::Internal => ("internal", 500),
        Code::Unavailable => ("unavailable", 503),
        Code::DataLoss => ("data_loss", 500),
        Code::Unauthenticated => ("unauthenticated", 401),
    };
    (
        name,
        StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    )
}

/// Connect's error object: code, message, details.
pub(super) fn connect_error(status: &Status) -> Value {
    let mut error = json!({ "code": connect_code(status.code()).0 });
    if !status.message().is_empty() {
        error["message"] = status.message().into();
    }
    let details: Vec<Value> = pb::Status::decode(status.details())
        .map(|decoded| decoded.details)
        .unwrap_or_default()
        .iter()
        .map(|detail| {
            let name = detail.type_url.rsplit('/').next().unwrap_or_default();
            json!({ "type": name, "value": STANDARD_NO_PAD.encode(&detail.value) })
        })
        .collect();
    if !details.is_empty() {
        error["details"] = details.into();
    }
    error
}

/// The body of Connect's end-of-stream envelope.
pub(super) fn connect_end(end: &End) -> Bytes {
    let mut out = json!({});
    if let Err(status) = &end.outcome {
        out["error"] = connect_error(status);
    }
    if !end.trailers.is_empty() {
        let mut metadata: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, value) in &end.trailers {
            if let Ok(value) = value.to_str() {
                metadata.entry(name.as_str()).or_default().push(value);
            }
        }
        out["metadata"] = json!(metadata);
    }
    out.to_string().into()
}

/// The trailers of gRPC: the status, and the trailers that the handler set.
pub(super) fn grpc_trailers(end: End) -> HeaderMap {
    let mut out = end.trailers;
    let Err(status) = end.outcome else {
        out.insert(GRPC_STATUS, HeaderValue::from_static("0"));
        return out;
    };
    let code: i32 = status.code().into();
    out.insert(GRPC_STATUS, HeaderValue::from(code));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(status.message())) {
        out.insert("grpc-message", message);
    }
    if !status.details().is_empty() {
        let encoded = STANDARD_NO_PAD.encode(status.details());
        if let Ok(value) = HeaderValue::from_str(&encoded) {
            out.insert("grpc-status-details-bin", value);
        }
    }
    out
}

/// The body of gRPC-Web's trailer frame: the trailers as HTTP/1 header lines.
pub(super) fn web_trailers(end: End) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in &grpc_trailers(end) {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// gRPC's message encoding: printable ASCII but `%` stays, all other bytes become `%XX`.
fn percent_encode(message: &str) -> String {
    use std::fmt::Write;
    message
        .bytes()
        .fold(String::with_capacity(message.len()), |mut out, byte| {
            if (0x20..=0x7e).contains(&byte) && byte != b'%' {
                out.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _infallible = write!(out, "%{byte:02X}");
            }
            out
        })
}

/// The error of a request above the limit.
pub(super) fn too_large(bytes_max: usize) -> Status {
    Status::resource_exhausted(format!("the request is larger than {bytes_max} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(percent_encode("50% of \u{fc}\n"), "50%25 of %C3%BC%0A");
    }

    #[test]
    fn details_reach_connect() {
        let details = pb::Status {
            code: 5,
            message: "gone".into(),
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/google.rpc.ErrorInfo".into(),
                value: vec![1, 2, 3, 4],
            }],
        };
        let status = Status::with_details(Code::NotFound, "gone", details.encode_to_vec().into());
        let error = connect_error(&status);
        assert_eq!(error["code"], "not_found");
        assert_eq!(error["message"], "gone");
        assert_eq!(error["details"][0]["type"], "google.rpc.ErrorInfo");
        assert_eq!(error["details"][0]["value"], "AQIDBA");
    }

    #[test]
    fn ends() {
        let mut end = End {
            outcome: Ok(()),
            trailers: HeaderMap::new(),
        };
        assert_eq!(&connect_end(&end)[..], b"{}");
        assert_eq!(web_trailers(end.clone()), b"grpc-status: 0\r\n");
        for value in ["1", "2"] {
            end.trailers.append("x", HeaderValue::from_static(value));
        }
        assert_eq!(&connect_end(&end)[..], br#"{"metadata":{"x":["1","2"]}}"#);
        assert_eq!(web_trailers(end), b"x: 1\r\nx: 2\r\ngrpc-status: 0\r\n");
    }
}
