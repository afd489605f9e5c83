//! Cross-origin headers (CORS). The API uses no cookies, so any origin may call it with a token.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::reply::{ReplyBody, full};

/// Headers that a preflight request may use if it names none: those of the protocols.
const OF_PROTOCOLS: &str = "Authorization, Content-Type, Content-Encoding, \
    Connect-WireProtocol-Version, Connect-Timeout-Ms, Connect-Content-Encoding, \
    Connect-Accept-Encoding, Grpc-Timeout, Grpc-Encoding, Grpc-Accept-Encoding, X-Grpc-Web, \
    X-User-Agent, Idempotency-Key";

/// `true` for the preflight request of a browser.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight request. It allows every header that the page asks for.
pub(super) fn preflight(asked: &HeaderMap) -> Response<ReplyBody> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST"),
    );
    // The wildcard does not cover Authorization, so the headers are named.
    let wanted = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        wanted.unwrap_or_else(|| HeaderValue::from_static(OF_PROTOCOLS)),
    );
    headers.insert(
        VARY,
        HeaderValue::from_static("Access-Control-Request-Headers"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    response
}

/// Lets a browser's page read the answer.
pub(super) fn expose(response: &mut Response<ReplyBody>) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Content-Encoding, \
             Connect-Content-Encoding",
        ),
    );
}
