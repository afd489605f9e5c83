//! The wire protocol of a request (Connect, gRPC or gRPC-Web), determined by its headers.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use proto_public::json::JsonError;
use proto_public::{Method, json};
use tonic::Status;

use super::compression::{Compression, SUPPORTED};

/// Longest deadline of a call. A longer one is shortened to it.
pub(super) const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// Longest error of a parser that a caller gets in full, bytes.
const ERROR_BYTES_MAX: usize = 1536;
/// Bytes at the start and at the end of a longer one that the caller gets.
const ERROR_START_BYTES: usize = 400;
const ERROR_END_BYTES: usize = 100;

/// Header of Connect's own version.
pub(super) const CONNECT_VERSION: &str = "connect-protocol-version";

/// Framing and status rules of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Connect, one bare message each way, HTTP status carries the error.
    ConnectUnary,
    /// Connect, enveloped messages, end-of-stream envelope carries the error.
    ConnectStream,
    /// gRPC over HTTP/2, trailers carry the status.
    Grpc,
    /// gRPC-Web, a last frame carries the status; `text` is base64 of the same.
    GrpcWeb { text: bool },
}

/// Encoding of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// Protobuf binary.
    Proto,
    /// Canonical protobuf JSON.
    Json,
}

impl Codec {
    /// The protobuf bytes of a request message.
    ///
    /// # Errors
    /// `invalid_argument` for JSON that is not this message. In methods of our own packages also for
    /// unknown fields: without one that is misspelt, a request may ask for more than it says.
    pub(super) fn to_proto(self, method: &Method, message: Bytes) -> Result<Bytes, Status> {
        let parsed = match self {
            Self::Proto => return Ok(message),
            Self::Json if method.has_strict_json() => {
                json::to_proto_strict(&method.input, &message)
            }
            Self::Json => json::to_proto(&method.input, &message),
        };
        let refuse = |error: JsonError| Status::invalid_argument(bounded(&error.to_string()));
        parsed.map(Bytes::from).map_err(refuse)
    }
}

/// A parser's error for the caller, which may repeat a text of the request: control characters are
/// escaped, and the middle of a long one is left out. The end names line and column.
fn bounded(error: &str) -> String {
    let mut text = String::new();
    let start = error.floor_char_boundary(ERROR_START_BYTES);
    let end = error.ceil_char_boundary(error.len().saturating_sub(ERROR_END_BYTES));
    let parts = match start < end && error.len() > ERROR_BYTES_MAX {
        true => [&error[..start], "…", &error[end..]],
        false => [error, "", ""],
    };
    for character in parts.iter().flat_map(|part| part.chars()) {
        match character {
            '"' | '\'' | '\\' => text.push(character),
            _ => text.extend(character.escape_debug()),
        }
    }
    text
}

/// The protocol of a request, as its headers declare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireProtocol {
    /// Framing and status rules.
    pub framing: Framing,
    /// Encoding of messages.
    pub codec: Codec,
}

impl WireProtocol {
    /// Reads the content type. `None` means an unsupported media type (HTTP 415).
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Self::from_content_type(value)
    }

    fn from_content_type(value: &str) -> Option<Self> {
        use Codec::{Json, Proto};
        use Framing::{ConnectStream, ConnectUnary, Grpc, GrpcWeb};
        let media = value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let (framing, codec) = match media.as_str() {
            "application/proto" => (ConnectUnary, Proto),
            "application/json" => (ConnectUnary, Json),
            "application/connect+proto" => (ConnectStream, Proto),
            "application/connect+json" => (ConnectStream, Json),
            "application/grpc" | "application/grpc+proto" => (Grpc, Proto),
            "application/grpc+json" => (Grpc, Json),
            "application/grpc-web" | "application/grpc-web+proto" => {
                (GrpcWeb { text: false }, Proto)
            }
            "application/grpc-web+json" => (GrpcWeb { text: false }, Json),
            "application/grpc-web-text" | "application/grpc-web-text+proto" => {
                (GrpcWeb { text: true }, Proto)
            }
            _ => return None,
        };
        Some(Self { framing, codec })
    }

    /// Refuses a version of Connect that the server does not speak.
    ///
    /// # Errors
    /// `invalid_argument`, as the Connect specification asks.
    pub(super) fn check_version(self, headers: &HeaderMap) -> Result<(), Status> {
        let is_connect = matches!(self.framing, Framing::ConnectUnary | Framing::ConnectStream);
        match headers.get(CONNECT_VERSION) {
            Some(version) if is_connect && version != "1" => Err(Status::invalid_argument(
                format!("{CONNECT_VERSION} must be \"1\", not {version:?}"),
            )),
            _ => Ok(()),
        }
    }

    /// The content type of the answer: the same as the request's.
    pub(super) fn content_type(self) -> &'static str {
        use Codec::{Json, Proto};
        match (self.framing, self.codec) {
            (Framing::ConnectUnary, Proto) => "application/proto",
            (Framing::ConnectUnary, Json) => "application/json",
            (Framing::ConnectStream, Proto) => "application/connect+proto",
            (Framing::ConnectStream, Json) => "application/connect+json",
            (Framing::Grpc, Proto) => "application/grpc+proto",
            (Framing::Grpc, Json) => "application/grpc+json",
            (Framing::GrpcWeb { text: false }, Proto) => "application/grpc-web+proto",
            (Framing::GrpcWeb { text: false }, Json) => "application/grpc-web+json",
            (Framing::GrpcWeb { text: true }, _) => "application/grpc-web-text+proto",
        }
    }

    /// Header with the compression of a message, in requests and answers.
    pub(super) fn encoding_header(self) -> &'static str {
        match self.framing {
            Framing::ConnectUnary => CONTENT_ENCODING.as_str(),
            Framing::ConnectStream => "connect-content-encoding",
            Framing::Grpc | Framing::GrpcWeb { .. } => "grpc-encoding",
        }
    }

    /// Header with the compressions that its sender accepts.
    pub(super) fn accept_header(self) -> &'static str {
        match self.framing {
            Framing::ConnectUnary => ACCEPT_ENCODING.as_str(),
            Framing::ConnectStream => "connect-accept-encoding",
            Framing::Grpc | Framing::GrpcWeb { .. } => "grpc-accept-encoding",
        }
    }

    /// Compression of the request, from the header that this framing uses.
    ///
    /// # Errors
    /// `unimplemented`, as the Connect and gRPC specifications ask, for an unknown encoding.
    pub(super) fn request_compression(self, headers: &HeaderMap) -> Result<Compression, Status> {
        let Some(name) = headers.get(self.encoding_header()) else {
            return Ok(Compression::Identity);
        };
        let name = name.to_str().unwrap_or("?");
        Compression::from_name(name).ok_or_else(|| {
            Status::unimplemented(format!(
                "unknown compression of the request; supported encodings are {SUPPORTED}"
            ))
        })
    }

    /// Compression of the answer: the best that the caller accepts.
    pub(super) fn answer_compression(self, headers: &HeaderMap) -> Compression {
        Compression::accepted(headers, self.accept_header())
    }

    /// Timeout that the caller sets. `None` means none.
    ///
    /// # Errors
    /// `invalid_argument` if the header cannot be read.
    pub(super) fn timeout(self, headers: &HeaderMap) -> Result<Option<Duration>, Status> {
        let (name, parse): (_, fn(&str) -> Option<Duration>) = match self.framing {
            Framing::ConnectUnary | Framing::ConnectStream => {
                ("connect-timeout-ms", parse_connect_timeout)
            }
            Framing::Grpc | Framing::GrpcWeb { .. } => ("grpc-timeout", parse_grpc_timeout),
        };
        let Some(value) = headers.get(name) else {
            return Ok(None);
        };
        let timeout = value.to_str().ok().and_then(parse).ok_or_else(|| {
            Status::invalid_argument(format!("the header {name} is not a timeout"))
        })?;
        Ok(Some(timeout.min(DEADLINE_MAX)))
    }
}

/// Parses a timeout of Connect: at most ten digits, milliseconds.
fn parse_connect_timeout(value: &str) -> Option<Duration> {
    digits(value, 10).map(Duration::from_millis)
}

/// Parses a timeout of gRPC: at most eight digits and a unit (H, M, S, m, u or n).
fn parse_grpc_timeout(value: &str) -> Option<Duration> {
    let (number, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let number = digits(number, 8)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

fn digits(value: &str, most: usize) -> Option<u64> {
    let plain = !value.is_empty() && value.len() <= most;
    if plain && value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types() {
        let cases = [
            (
                "application/proto",
                Some((Framing::ConnectUnary, Codec::Proto)),
            ),
            (
                "Application/JSON; charset=utf-8",
                Some((Framing::ConnectUnary, Codec::Json)),
            ),
            (
                "application/connect+json",
                Some((Framing::ConnectStream, Codec::Json)),
            ),
            ("application/grpc", Some((Framing::Grpc, Codec::Proto))),
            ("application/grpc+json", Some((Framing::Grpc, Codec::Json))),
            (
                "application/grpc-web-text",
                Some((Framing::GrpcWeb { text: true }, Codec::Proto)),
            ),
            (
                "application/grpc-web+json",
                Some((Framing::GrpcWeb { text: false }, Codec::Json)),
            ),
            ("text/plain", None),
            ("application/grpc+thrift", None),
        ];
        for (value, expected) in cases {
            let got = WireProtocol::from_content_type(value).map(|p| (p.framing, p.codec));
            assert_eq!(got, expected, "{value}");
        }
    }

    #[test]
    fn timeouts() {
        assert_eq!(parse_grpc_timeout("5S"), Some(Duration::from_secs(5)));
        assert_eq!(parse_grpc_timeout("100m"), Some(Duration::from_millis(100)));
        for bad in ["", "S", "5", "5x", "-1S", "123456789S", "1\u{e4}"] {
            assert_eq!(parse_grpc_timeout(bad), None, "{bad}");
        }
        assert_eq!(
            parse_connect_timeout("2500"),
            Some(Duration::from_millis(2500))
        );
        assert_eq!(parse_connect_timeout("+5"), None);
        assert_eq!(parse_connect_timeout("12345678901"), None);
    }
}
