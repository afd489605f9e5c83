//! Finds the digest of an image whose caller gives none: published clients know no label for it.
//! The digest that is published beside the image counts. Without one, the image itself is read and
//! hashed.
//!
//! On each node one fetch of a URL serves all callers that need its digest. It goes on when they
//! have left, and keeps its result for callers that come again: a large image takes longer than
//! many clients wait for an answer. A result is handed over once, so that the next call reads from
//! the image store again.
//!
//! Invariants:
//! - http and https only; at most 5 redirects, none from https to http;
//! - fetches, bytes, time and kept results are bounded, see [`FetchLimits`];
//! - no URL, which may hold a password, and no body of an answer gets into an error or a log.

mod checksum_file;
mod error;
mod fetch;
mod fetches;
mod limits;
mod plan;

use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard};
use reqwest::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use error::FetchError;
use fetches::{FetchEnd, FetchResult, Fetches};

pub use limits::FetchLimits;
pub(crate) use plan::{DigestPlan, FoundDigest, on_create, on_update, with_digest, without_source};

/// Finds digests. One object for each node.
pub struct ImageDigests {
    limits: FetchLimits,
    http: OnceLock<Client>,
    fetches: Mutex<Fetches>,
    stop: CancellationToken,
}

impl std::fmt::Debug for ImageDigests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageDigests")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl ImageDigests {
    /// Makes the object. It fetches nothing before the first call, and nothing after `stop`.
    pub fn new(limits: FetchLimits, stop: CancellationToken) -> Self {
        Self {
            limits,
            http: OnceLock::new(),
            fetches: Mutex::default(),
            stop,
        }
    }

    /// The digest of the file at `url`. When the caller leaves, the fetch goes on, and the next
    /// call for this URL gets its result.
    pub(crate) async fn find(&self, url: &str) -> FetchResult {
        let mut fetch = self.join_or_start(url)?;
        let ended = async {
            let ended = fetch.wait_for(Option::is_some).await;
            ended.ok().and_then(|ended| ended.clone())
        };
        let ended = tokio::select! {
            ended = ended => ended,
            () = self.stop.cancelled() => return Err(FetchError::Stopping),
        };
        let mut fetches = self.fetches();
        let current = fetches.by_url.get(url);
        if current.is_some_and(|current| current.same_channel(&fetch)) {
            fetches.by_url.remove(url);
        }
        // The task ended without a result: it panicked.
        ended.map_or(Err(FetchError::Failed), |(_, answer)| answer)
    }

    fn join_or_start(&self, text: &str) -> Result<watch::Receiver<FetchEnd>, FetchError> {
        let url = fetch::parse_url(text)?;
        let http = self.client()?;
        let mut fetches = self.fetches();
        fetches.tidy(&self.limits);
        if let Some(fetch) = fetches.by_url.get(text) {
            return Ok(fetch.clone());
        }
        if fetches.running() >= self.limits.fetches {
            return Err(FetchError::Busy(self.limits.fetches));
        }
        let (sender, receiver) = watch::channel(None);
        let (limits, stop) = (self.limits, self.stop.clone());
        fetches.tasks.spawn(async move {
            let fetch = tokio::time::timeout(limits.whole, fetch::find(&http, &url, &limits));
            let answer = tokio::select! {
                answer = fetch => answer.unwrap_or(Err(FetchError::TooSlow(limits.whole))),
                () = stop.cancelled() => Err(FetchError::Stopping),
            };
            sender.send_replace(Some((Instant::now(), answer)));
        });
        fetches.by_url.insert(text.to_owned(), receiver.clone());
        Ok(receiver)
    }

    /// The HTTP client, made at the first fetch: a node that fetches nothing needs no authorities of
    /// the system.
    fn client(&self) -> Result<Client, FetchError> {
        if let Some(http) = self.http.get() {
            return Ok(http.clone());
        }
        let http = fetch::client(&self.limits).map_err(|error| {
            let error = base_outbound::reason(error);
            tracing::error!(error, "there is no HTTP client for image stores");
            FetchError::Failed
        })?;
        Ok(self.http.get_or_init(|| http).clone())
    }

    fn fetches(&self) -> MutexGuard<'_, Fetches> {
        self.fetches.lock()
    }
}
