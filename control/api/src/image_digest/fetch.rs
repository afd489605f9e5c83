//! Finds the digest of a file: the published one, or the file's own.

use std::time::Duration;

use md5::{Digest as _, Md5};
use proto_types::Digest;
use reqwest::header::ACCEPT_ENCODING;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode};
use ring::digest::{Context, SHA256};
use url::Url;

use super::checksum_file::{Checksum, FILE_BYTES_MAX, digest_of};
use super::error::FetchError;
use super::limits::FetchLimits;
use super::plan::{DigestSource, FoundDigest};

/// Most redirects that are followed for one request. Beyond it the fetch fails.
const REDIRECTS_MAX: usize = 5;
/// Longest time to connect, TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client for image stores.
///
/// # Errors
/// There is no TLS provider, or the system has no authorities.
pub(super) fn client(limits: &FetchLimits) -> reqwest::Result<Client> {
    let follow = |attempt: Attempt<'_>| match may_follow(attempt.previous(), attempt.url()) {
        true => attempt.follow(),
        false => attempt.error("a redirect that is not followed"),
    };
    base_outbound::client(None, Policy::custom(follow))?
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(limits.stall)
        .build()
}

/// `true` if a redirect to `next` is followed after these requests.
fn may_follow(previous: &[Url], next: &Url) -> bool {
    let from_tls = previous.last().is_some_and(|last| last.scheme() == "https");
    let is_safe = match next.scheme() {
        "https" => true,
        "http" => !from_tls,
        _ => false,
    };
    // The first of them is the request itself.
    is_safe && previous.len() <= REDIRECTS_MAX
}

/// The URL of an image, if control fetches from there.
pub(super) fn parse_url(text: &str) -> Result<Url, FetchError> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or(FetchError::Url)
}

/// The digest of the file at `url`: the published SHA-256 or SHA-512, else its own SHA-256.
pub(super) async fn find(
    http: &Client,
    url: &Url,
    limits: &FetchLimits,
) -> Result<FoundDigest, FetchError> {
    let source = DigestSource::Published;
    let sha256 = published(http, url, Checksum::Sha256).await?;
    if let Some(digest) = sha256.and_then(|bytes| bytes.try_into().ok()) {
        let digest = Digest::sha256(digest);
        return Ok(FoundDigest { digest, source });
    }
    let sha512 = published(http, url, Checksum::Sha512).await?;
    if let Some(digest) = sha512.and_then(|bytes| bytes.try_into().ok()) {
        let digest = Digest::sha512(digest);
        return Ok(FoundDigest { digest, source });
    }
    let md5 = published(http, url, Checksum::Md5).await?;
    load(http, url, limits, md5).await
}

/// The digest that is published beside the file at `url`. `None` means that there is no checksum
/// file, or none that names the file.
async fn published(
    http: &Client,
    url: &Url,
    checksum: Checksum,
) -> Result<Option<Vec<u8>>, FetchError> {
    let Some(name) = file_name(url) else {
        return Ok(None);
    };
    let mut beside = url.clone();
    beside.set_path(&format!("{}.{}", url.path(), checksum.suffix()));
    let mut answer = match get(http, beside).await {
        Ok(answer) => answer,
        // Some stores redirect requests for files that they do not have to a page of theirs.
        Err(FetchError::Redirect) => return Ok(None),
        Err(error) => return Err(error),
    };
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let content = base_outbound::body(&mut answer, FILE_BYTES_MAX).await;
    Ok(content
        .ok()
        .and_then(|content| digest_of(&content, checksum, name)))
}

/// The last part of the URL's path. `None` means that it is empty.
fn file_name(url: &Url) -> Option<&str> {
    url.path_segments()?
        .next_back()
        .filter(|name| !name.is_empty())
}

async fn get(http: &Client, url: Url) -> Result<Response, FetchError> {
    // The digest must be of the file as it is stored, not of a compressed transfer.
    let request = http.get(url).header(ACCEPT_ENCODING, "identity");
    request.send().await.map_err(|error| {
        let kind = match () {
            () if error.is_redirect() => FetchError::Redirect,
            () if error.is_timeout() => FetchError::Stalled,
            () => FetchError::Unreachable,
        };
        tracing::info!(
            error = base_outbound::reason(error),
            "an image store did not answer"
        );
        kind
    })
}

/// Reads the whole file and hashes it.
async fn load(
    http: &Client,
    url: &Url,
    limits: &FetchLimits,
    md5: Option<Vec<u8>>,
) -> Result<FoundDigest, FetchError> {
    let bytes_max = limits.image_bytes_max;
    let mut answer = get(http, url.clone()).await?;
    if answer.status() != StatusCode::OK {
        return Err(FetchError::Answered(answer.status().as_u16()));
    }
    if answer
        .content_length()
        .is_some_and(|bytes| bytes > bytes_max)
    {
        return Err(FetchError::TooLong { bytes_max });
    }
    let mut sha256 = Context::new(&SHA256);
    let mut own_md5 = md5.is_some().then(Md5::new);
    let mut bytes = 0_u64;
    while let Some(piece) = answer.chunk().await.map_err(broken)? {
        bytes = bytes.saturating_add(piece.len().try_into().unwrap_or(u64::MAX));
        if bytes > bytes_max {
            return Err(FetchError::TooLong { bytes_max });
        }
        sha256.update(&piece);
        if let Some(md5) = &mut own_md5 {
            md5.update(&piece);
        }
    }
    if bytes == 0 {
        return Err(FetchError::Empty);
    }
    let source = match (md5, own_md5.map(Md5::finalize)) {
        (Some(published), Some(own)) if published[..] != own[..] => return Err(FetchError::Md5),
        (Some(_), _) => DigestSource::FetchedMd5Agrees,
        (None, _) => DigestSource::Fetched,
    };
    let digest = sha256.finish();
    let digest = digest.as_ref().try_into().map_err(|_| FetchError::Failed)?;
    let digest = Digest::sha256(digest);
    Ok(FoundDigest { digest, source })
}

fn broken(error: reqwest::Error) -> FetchError {
    match error.is_timeout() {
        true => FetchError::Stalled,
        false => FetchError::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn redirects_are_few_and_never_leave_tls() {
        let (plain, tls) = (url("http://a.example/i"), url("https://a.example/i"));
        for (last, next, follows) in [
            (&plain, &plain, true),
            (&plain, &tls, true),
            (&tls, &tls, true),
            (&tls, &plain, false),
            (&plain, &url("ftp://a.example/i"), false),
            (&plain, &url("file:///etc/passwd"), false),
        ] {
            let previous = [last.clone()];
            assert_eq!(may_follow(&previous, next), follows, "{last} {next}");
        }
        let previous = vec![plain.clone(); REDIRECTS_MAX];
        assert!(may_follow(&previous, &plain));
        let previous = vec![plain.clone(); REDIRECTS_MAX + 1];
        assert!(!may_follow(&previous, &plain));
    }

    #[test]
    fn urls_that_are_fetched() {
        for (text, fetched) in [
            ("http://a.example/i.tar.zst", true),
            ("https://user:secret@a.example:8443/i?x=1", true),
            ("ftp://a.example/i", false),
            ("file:///etc/passwd", false),
            ("http://", false),
            ("i.tar.zst", false),
            ("", false),
        ] {
            assert_eq!(parse_url(text).is_ok(), fetched, "{text}");
        }
        assert_eq!(file_name(&url("http://a.example/x/i.tar?y")), Some("i.tar"));
        assert_eq!(file_name(&url("http://a.example/x/")), None);
        assert_eq!(file_name(&url("http://a.example")), None);
    }
}
