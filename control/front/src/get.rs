//! Connect's GET: the message of a method without side effects, in the query of the URL.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};
use url::form_urlencoded::parse;

use super::protocol::CONNECT_VERSION;

/// Takes base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Turns a GET into the equivalent POST, and returns the message from its query.
///
/// # Errors
/// A parameter is missing or cannot be read; the text names it.
pub(super) fn into_post(parts: &mut Parts) -> Result<Bytes, &'static str> {
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let find = |name: &str| parse(query.as_bytes()).find(|(key, _)| key == name);
    let value = |name: &str| find(name).map(|(_, value)| value);
    let codec = match value("encoding").as_deref() {
        Some("json") => "application/json",
        Some("proto") => "application/proto",
        _ => return Err("a GET of Connect names its encoding: ?encoding=json&message={}\n"),
    };
    let bytes = raw(&query, "message").ok_or("a GET of Connect has a parameter \"message\"\n")?;
    let message = match value("base64").as_deref() {
        None | Some("0") => bytes,
        Some("1") => BASE64
            .decode(bytes)
            .map_err(|_| "the parameter \"message\" is not base64 of the URL-safe alphabet\n")?,
        Some(_) => return Err("the parameter \"base64\" is 1 or left out\n"),
    };
    let version =
        value("connect").map(|version| version.strip_prefix('v').unwrap_or("?").to_owned());
    let compression = value("compression").map(|name| name.into_owned());
    let mut set = |name: HeaderName, value: &str| {
        let value = HeaderValue::from_str(value).unwrap_or_else(|_| HeaderValue::from_static("?"));
        parts.headers.insert(name, value);
    };
    set(CONTENT_TYPE, codec);
    if let Some(version) = version {
        set(HeaderName::from_static(CONNECT_VERSION), &version);
    }
    if let Some(compression) = compression {
        set(CONTENT_ENCODING, &compression);
    }
    parts.method = Method::POST;
    Ok(message.into())
}

/// The bytes of a parameter, percent-decoded. They are not a text: a message need not be UTF-8.
fn raw(query: &str, name: &str) -> Option<Vec<u8>> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.into_iter().find(|(key, _)| *key == name)?.1;
    let mut bytes = value.bytes();
    let mut out = Vec::with_capacity(value.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn asked(query: &str) -> (Parts, Result<Bytes, &'static str>) {
        let uri = format!("/metalstack.api.v2.VersionService/Get{query}");
        let (mut parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
        let message = into_post(&mut parts);
        (parts, message)
    }

    #[test]
    fn the_message_is_in_the_query() {
        for (query, codec, message) in [
            (
                "?encoding=json&message=%7B%7D",
                "application/json",
                &b"{}"[..],
            ),
            (
                "?message=&encoding=proto&connect=v1",
                "application/proto",
                b"",
            ),
            (
                "?encoding=proto&message=%0a%FF",
                "application/proto",
                b"\n\xff",
            ),
            (
                "?encoding=proto&base64=1&message=_-8",
                "application/proto",
                b"\xff\xef",
            ),
            (
                "?encoding=proto&base64=1&message=_-8%3D",
                "application/proto",
                b"\xff\xef",
            ),
        ] {
            let (parts, found) = asked(query);
            assert_eq!(found.unwrap(), message, "{query}");
            assert_eq!(parts.method, Method::POST);
            assert_eq!(parts.headers[CONTENT_TYPE], codec);
        }
        let (parts, _) = asked("?encoding=json&message=%7B%7D&connect=v2&compression=gzip");
        assert_eq!(parts.headers[CONNECT_VERSION], "2");
        assert_eq!(parts.headers[CONTENT_ENCODING], "gzip");
        for bad in [
            "",
            "?encoding=json",
            "?encoding=xml&message=x",
            "?encoding=proto&message=%2",
            "?encoding=proto&message=%zz",
            "?encoding=proto&base64=1&message=!",
            "?encoding=proto&base64=2&message=x",
        ] {
            assert!(asked(bad).1.is_err(), "{bad}");
        }
    }
}
