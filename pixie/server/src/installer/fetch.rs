//! Fetches one file by HTTP or HTTPS, completely and within its bound, or not at all.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{
    CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    TRANSFER_ENCODING,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Client, Response, StatusCode, Url, Version};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::fetch_error::{FetchError, FetchSetupError};
use super::pair::{FetchedFile, PairFile};
use crate::config::FetchLimits;

/// Time limit of a connection attempt.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Redirects followed. A further one fails the fetch.
const REDIRECTS_MAX: usize = 5;
/// Longest `ETag` and `Last-Modified` that is stored, bytes. A longer one counts as absent.
const VALIDATOR_LEN_MAX: usize = 1024;
const AGENT: &str = concat!("metalmesh-pixie/", env!("CARGO_PKG_VERSION"));

/// The outcome of a successful fetch.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// The server still has the file that was fetched before.
    Unchanged,
    /// A different file, on disk and synced.
    New(FetchedFile),
}

/// The HTTP client.
#[derive(Debug)]
pub(crate) struct Fetcher {
    client: Client,
    limits: FetchLimits,
}

impl Fetcher {
    /// Creates the client. It trusts the authorities of `ca_file`; `None` means those of the system.
    ///
    /// # Errors
    /// [`FetchSetupError`] if `ca_file` cannot be read or has no authorities.
    pub(crate) fn new(
        ca_file: Option<&Path>,
        limits: &FetchLimits,
    ) -> Result<Self, FetchSetupError> {
        // reqwest's builder panics if no crypto provider is installed.
        agents_kit::install_crypto_provider();
        let builder = || {
            Client::builder()
                .user_agent(AGENT)
                .connect_timeout(CONNECT_TIME_MAX)
                .read_timeout(limits.stall)
                // A referer would send the query of a presigned URL, which holds its signature, to
                // the target of a redirect.
                .referer(false)
                .redirect(Policy::custom(|attempt| match refusal(&attempt) {
                    Some(reason) => attempt.error(reason),
                    None => attempt.follow(),
                }))
        };
        let client = match ca_file {
            Some(path) => builder().tls_certs_only(authorities(path)?).build(),
            None => builder().build().or_else(|error| {
                // Without a certificate bundle on this host plain http still works.
                tracing::warn!(%error, "no certificate authorities of the system");
                builder().tls_certs_only([]).build()
            }),
        };
        Ok(Self {
            client: client.map_err(FetchSetupError::Client)?,
            limits: limits.clone(),
        })
    }

    /// Fetches a file into `to`, which must not exist, unless the server still has `known`.
    ///
    /// # Errors
    /// [`FetchError`]; `to` may then contain a part of the file.
    pub(crate) async fn fetch(
        &self,
        url: &str,
        file: PairFile,
        known: Option<&FetchedFile>,
        to: &Path,
    ) -> Result<Fetched, FetchError> {
        let work = self.fetch_untimed(url, file, known, to);
        let limit = self.limits.time_max;
        // The read timeout alone does not end a download whose server sends a byte now and then.
        timeout(limit, work)
            .await
            .map_err(|_| FetchError::Slow(limit))?
    }

    async fn fetch_untimed(
        &self,
        url: &str,
        file: PairFile,
        known: Option<&FetchedFile>,
        to: &Path,
    ) -> Result<Fetched, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::NotUrl)?;
        if !is_http(&url) {
            return Err(FetchError::Scheme(url.scheme().into()));
        }
        let mut request = self.client.get(url);
        if let Some(known) = known {
            // An `ETag` is exact; a date has a resolution of one second.
            request = match (&known.etag, &known.last_modified) {
                (Some(etag), _) => request.header(IF_NONE_MATCH, etag),
                (None, Some(time)) => request.header(IF_MODIFIED_SINCE, time),
                (None, None) => request,
            };
        }
        let answer = request.send().await?;
        match (answer.status(), known) {
            (StatusCode::NOT_MODIFIED, Some(_)) => return Ok(Fetched::Unchanged),
            (StatusCode::OK, Some(known)) if is_same(known, answer.headers()) => {
                return Ok(Fetched::Unchanged);
            }
            (StatusCode::OK, _) => {}
            (status, _) => return Err(FetchError::Status(status)),
        }
        let len_max = match file {
            PairFile::Kernel => self.limits.kernel_len_max,
            PairFile::Image => self.limits.image_len_max,
        };
        save(answer, len_max, to).await.map(Fetched::New)
    }
}

/// The reason why a redirect is not followed. `None` means that it is.
fn refusal(attempt: &Attempt<'_>) -> Option<&'static str> {
    let came_by_https = attempt.previous().iter().any(|url| url.scheme() == "https");
    refusal_of(attempt.previous().len(), came_by_https, attempt.url())
}

/// `requests` is the number of requests sent before this one: the first and one per redirect.
fn refusal_of(requests: usize, came_by_https: bool, to: &Url) -> Option<&'static str> {
    if requests > REDIRECTS_MAX {
        Some("more than 5 redirects")
    } else if !is_http(to) {
        Some("a redirect to a scheme other than http and https")
    } else if came_by_https && to.scheme() != "https" {
        Some("a redirect from https to plain http")
    } else {
        None
    }
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// `true` if an answer with status 200 is the known file: some servers ignore conditional requests.
/// Without an `ETag` and a date the length decides.
fn is_same(known: &FetchedFile, headers: &HeaderMap) -> bool {
    let told = |name| validator(headers, name);
    match (&known.etag, told(ETAG)) {
        (Some(known), Some(told)) => return *known == told,
        (None, None) => {}
        _ => return false,
    }
    match (&known.last_modified, told(LAST_MODIFIED)) {
        (Some(known), Some(told)) => *known == told,
        (None, None) => length(headers) == Some(known.len),
        _ => false,
    }
}

fn validator(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    (text.len() <= VALIDATOR_LEN_MAX).then(|| text.to_owned())
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Writes the body of an answer to disk and syncs it.
async fn save(mut answer: Response, len_max: u64, to: &Path) -> Result<FetchedFile, FetchError> {
    let headers = answer.headers();
    let want = length(headers);
    // An HTTP/1 body without length or chunks ends with its connection. A broken connection then
    // looks like the end, and a cut kernel would be served.
    let is_framed = want.is_some()
        || answer.version() >= Version::HTTP_2
        || headers.contains_key(TRANSFER_ENCODING);
    if !is_framed {
        return Err(FetchError::Unbounded);
    }
    if want.is_some_and(|want| want > len_max) {
        return Err(FetchError::TooLong(len_max));
    }
    let (etag, last_modified) = (validator(headers, ETAG), validator(headers, LAST_MODIFIED));
    let (mut len, mut hash) = (0_u64, Sha256::new());
    let open = tokio::fs::File::create_new(to);
    let mut file = open.await.map_err(FetchError::Write)?;
    // The bound is checked again here, because a chunked answer announces no length.
    while let Some(piece) = answer.chunk().await? {
        len = len.saturating_add(piece.len() as u64);
        if len > len_max {
            return Err(FetchError::TooLong(len_max));
        }
        hash.update(&piece);
        file.write_all(&piece).await.map_err(FetchError::Write)?;
    }
    if let Some(want) = want.filter(|want| *want != len) {
        return Err(FetchError::Cut { got: len, want });
    }
    if len == 0 {
        return Err(FetchError::Empty);
    }
    // Synced before the record of the pair is written: the record vouches for complete files.
    // tokio writes in the background: the error of the last write shows only in the flush.
    file.flush().await.map_err(FetchError::Write)?;
    file.sync_all().await.map_err(FetchError::Write)?;
    Ok(FetchedFile {
        len,
        sha256: hex::encode(hash.finalize()),
        etag,
        last_modified,
    })
}

/// Reads the authorities of a PEM file.
fn authorities(path: &Path) -> Result<Vec<Certificate>, FetchSetupError> {
    let pem = std::fs::read(path).map_err(|source| FetchSetupError::Read {
        path: path.into(),
        source,
    })?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(FetchSetupError::Authorities { path: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    /// The file that is known, what the server tells, and whether that is the same.
    type Row<'a> = (FetchedFile, &'a [(HeaderName, &'static str)], bool);

    #[test]
    fn redirects_are_few_and_never_down_to_http() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (http, https) = (url("http://h/x"), url("https://h/x"));
        assert_eq!(refusal_of(1, false, &http), None);
        assert_eq!(refusal_of(1, false, &https), None);
        assert_eq!(refusal_of(REDIRECTS_MAX, true, &https), None);
        assert!(refusal_of(REDIRECTS_MAX + 1, true, &https).is_some());
        assert!(refusal_of(2, true, &http).is_some_and(|why| why.contains("plain http")));
        assert!(refusal_of(1, false, &url("file:///etc/shadow")).is_some());
    }

    #[test]
    fn a_file_is_the_same_by_etag_then_by_date_then_by_length() {
        let known = |etag: Option<&str>, time: Option<&str>| FetchedFile {
            len: 7,
            sha256: String::new(),
            etag: etag.map(Into::into),
            last_modified: time.map(Into::into),
        };
        let rows: [Row<'_>; 8] = [
            (known(Some("a"), None), &[(ETAG, "a")], true),
            (known(Some("a"), None), &[(ETAG, "b")], false),
            (known(Some("a"), None), &[(CONTENT_LENGTH, "7")], false),
            (known(None, Some("t")), &[(LAST_MODIFIED, "t")], true),
            (known(None, Some("t")), &[(LAST_MODIFIED, "u")], false),
            (known(None, None), &[(CONTENT_LENGTH, "7")], true),
            (known(None, None), &[(CONTENT_LENGTH, "8")], false),
            (
                known(None, None),
                &[(ETAG, "a"), (CONTENT_LENGTH, "7")],
                false,
            ),
        ];
        for (known, told, want) in rows {
            let headers: HeaderMap = told
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
                .collect();
            assert_eq!(is_same(&known, &headers), want, "{known:?} {told:?}");
        }
    }
}
