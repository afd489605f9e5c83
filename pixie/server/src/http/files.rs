//! Serves files with their length, whole or one range (RFC 9110 §14). Firmware and iPXE need both.

use std::io::{self, SeekFrom};
use std::path::Path;

use futures::TryStreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, HeaderValue, RANGE};
use hyper::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::{Body, full, plain, with_type};

/// Bytes read from disk at once per connection.
const CHUNK_LEN: usize = 64 << 10;

/// Answers with a file.
pub(super) async fn file(path: &Path, request: &Request<Incoming>) -> Response<Body> {
    match open(path, request).await {
        Ok(response) => response,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            plain(StatusCode::NOT_FOUND, "no such file\n")
        }
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "file not served");
            plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the file cannot be read\n",
            )
        }
    }
}

async fn open(path: &Path, request: &Request<Incoming>) -> io::Result<Response<Body>> {
    // The open file is served to its end even if its pair is replaced meanwhile.
    let mut file = tokio::fs::File::open(path).await?;
    let metadata = file.metadata().await?;
    // A directory opens like a file. Its first read would fail only after the headers are sent.
    if !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let len = metadata.len();
    let asked = request
        .headers()
        .get(RANGE)
        .and_then(|value| value.to_str().ok());
    let (status, first, count) = match asked.map_or(Span::Whole, |text| span(text, len)) {
        Span::Whole => (StatusCode::OK, 0, len),
        Span::Part { first, count } => (StatusCode::PARTIAL_CONTENT, first, count),
        Span::Outside => {
            let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE, "no such range\n");
            insert(&mut response, CONTENT_RANGE, &format!("bytes */{len}"));
            return Ok(response);
        }
    };
    // A HEAD has the headers of the GET, `Content-Length` included.
    let body = if request.method() == Method::HEAD {
        full("")
    } else {
        file.seek(SeekFrom::Start(first)).await?;
        // `take`: a file that grows during the transfer must not exceed the announced length.
        let stream = ReaderStream::with_capacity(file.take(count), CHUNK_LEN);
        BodyExt::boxed(StreamBody::new(stream.map_ok(Frame::data)))
    };
    let mut response = with_type(status, "application/octet-stream", body);
    insert(&mut response, ACCEPT_RANGES, "bytes");
    insert(&mut response, CONTENT_LENGTH, &count.to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let last = first + count - 1;
        insert(
            &mut response,
            CONTENT_RANGE,
            &format!("bytes {first}-{last}/{len}"),
        );
    }
    Ok(response)
}

fn insert(response: &mut Response<Body>, name: hyper::header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The part of a file that a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Span {
    Whole,
    Part { first: u64, count: u64 },
    Outside,
}

/// Parses a `Range` header. Several ranges and malformed ones mean the whole file, as RFC 9110
/// permits.
fn span(text: &str, len: u64) -> Span {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|r| r.split_once('-')) else {
        return Span::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let part = |first: u64, count: u64| match count {
        0 => Span::Outside,
        count => Span::Part { first, count },
    };
    match (first.parse::<u64>(), last.parse::<u64>()) {
        // A last position beyond the end means the end (RFC 9110 §14.1.2).
        (Ok(first), Ok(last)) if first <= last => {
            part(first, last.saturating_add(1).min(len).saturating_sub(first))
        }
        (Ok(first), Err(_)) if last.is_empty() => part(first, len.saturating_sub(first)),
        // `bytes=-500` asks for the last 500 bytes.
        (Err(_), Ok(suffix)) if first.is_empty() => {
            let count = suffix.min(len);
            part(len - count, count)
        }
        _ => Span::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_by_the_rfc() {
        let part = |first, count| Span::Part { first, count };
        for (text, len, want) in [
            ("bytes=0-9", 100, part(0, 10)),
            ("bytes=90-200", 100, part(90, 10)),
            ("bytes=5-", 100, part(5, 95)),
            ("bytes=-7", 100, part(93, 7)),
            ("bytes=-700", 100, part(0, 100)),
            ("bytes=100-", 100, Span::Outside),
            ("bytes=100-200", 100, Span::Outside),
            ("bytes=-0", 100, Span::Outside),
            ("bytes=0-0", 0, Span::Outside),
            ("bytes=9-5", 100, Span::Whole),
            ("bytes=0-1,5-6", 100, Span::Whole),
            ("lines=0-1", 100, Span::Whole),
            ("bytes=0-18446744073709551615", 100, part(0, 100)),
        ] {
            assert_eq!(span(text, len), want, "{text} of {len}");
        }
    }
}
