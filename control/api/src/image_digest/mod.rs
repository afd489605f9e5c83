//! Finds the digest of an image whose caller gives none, as published clients do: they know of no
//! label for it. The digest that is published beside the image counts, or else the image itself is
//! read and hashed.
//!
//! One fetch for a URL and node serves all who want its digest. It goes on when its callers have
//! left, and keeps its result for those who come again: a large image takes longer than many
//! clients wait for an answer. What has been handed over is forgotten, so that the next call looks
//! at the store again.
//!
//! Invariants:
//! - http and https only; at most 5 redirects, none from https to http;
//! - fetches, bytes, time and kept results are bounded, see [`FetchLimits`];
//! - no URL, which may hold a password, and no body of an answer gets into an error or a log.

mod checksum_file;
mod fetch;
mod plan;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use control_gate::refusal::of_state;
use control_state::{ErrorCode, StateError};
use parking_lot::{Mutex, MutexGuard};
use proto_types::ImageId;
use reqwest::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

pub(crate) use plan::{DigestPlan, FoundDigest, on_create, on_update, with_digest, without_source};

/// Bounds of what a node fetches to find digests.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Fetches at the same time; more are refused with `resource_exhausted`. Each is a connection
    /// and the work of hashing.
    pub fetches: usize,
    /// Results that nobody has come for; the oldest goes first.
    pub results: usize,
    /// How long such a result is kept.
    pub kept: Duration,
    /// Largest image that is read, bytes: as large as what is installed may be.
    pub image_bytes_max: u64,
    /// How long a store may send nothing.
    pub stall: Duration,
    /// Time for a whole fetch.
    pub whole: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            fetches: 8,
            results: 64,
            kept: Duration::from_secs(600),
            image_bytes_max: 64 << 30,
            stall: Duration::from_secs(30),
            whole: Duration::from_secs(600),
        }
    }
}

/// Why a digest was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("it must be an http or https URL with a host")]
    Url,
    #[error("its server cannot be reached from this control node")]
    Unreachable,
    #[error("its server is silent for too long")]
    Stalled,
    #[error("finding it takes longer than {:?}", .0)]
    TooSlow(Duration),
    #[error("its server answers {0}")]
    Answered(u16),
    #[error("it is redirected more than 5 times, or from https to http")]
    Redirect,
    #[error("the file is longer than {bytes_max} bytes")]
    TooLong { bytes_max: u64 },
    #[error("the file is empty")]
    Empty,
    #[error("the file ends early")]
    Broken,
    #[error("the file has another MD5 than the one that is published beside it")]
    Md5,
    #[error("the fetch failed; see the log of this control node")]
    Failed,
    #[error("this control node finds the digests of {0} images already")]
    Busy(usize),
    #[error("this control node shuts down")]
    Stopping,
}

impl FetchError {
    /// The refusal of a call on this image.
    pub(crate) fn status(&self, image: &ImageId) -> Status {
        let code = match self {
            Self::Busy(_) => ErrorCode::TooMany,
            Self::Stopping => ErrorCode::Unavailable,
            _ => ErrorCode::ImageDigestNotFound,
        };
        let message = format!("image \"{image}\": no digest is found for its url: {self}");
        let error = StateError::new(code, message).object("image", image);
        of_state(match self {
            Self::Busy(_) => {
                error.hint("try again in a moment, or set the label metalmesh.dev/digest")
            }
            _ => error,
        })
    }
}

type Answer = Result<FoundDigest, FetchError>;

/// A result, and when it was there. `None` means that the fetch goes on.
type Ended = Option<(Instant, Answer)>;

/// The fetches of a node and their results.
#[derive(Default)]
struct Fetches {
    by_url: BTreeMap<String, watch::Receiver<Ended>>,
    tasks: JoinSet<()>,
}

/// Finds digests; one for each node.
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
    /// Fetches nothing before it is asked to, and nothing after `stop`.
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
    pub(crate) async fn find(&self, url: &str) -> Answer {
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
        // Without a result the task panicked.
        ended.map_or(Err(FetchError::Failed), |(_, answer)| answer)
    }

    fn join_or_start(&self, text: &str) -> Result<watch::Receiver<Ended>, FetchError> {
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

    /// Made at the first fetch: a node that fetches nothing needs no authorities of the system.
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

impl Fetches {
    fn running(&self) -> usize {
        let runs = |fetch: &&watch::Receiver<Ended>| fetch.borrow().is_none();
        self.by_url.values().filter(runs).count()
    }

    /// Forgets results that nobody came for in time, fetches without a result, and results beyond
    /// the bound.
    fn tidy(&mut self, limits: &FetchLimits) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(error = %error, "a fetch of an image failed");
            }
        }
        self.by_url.retain(|_, fetch| match &*fetch.borrow() {
            Some((at, _)) => at.elapsed() < limits.kept,
            None => fetch.has_changed().is_ok(),
        });
        let ended = |fetch: &watch::Receiver<Ended>| fetch.borrow().as_ref().map(|(at, _)| *at);
        let mut results: Vec<(Instant, String)> = self
            .by_url
            .iter()
            .filter_map(|(url, fetch)| Some((ended(fetch)?, url.clone())))
            .collect();
        results.sort_unstable();
        let beyond = results.len().saturating_sub(limits.results);
        for (_, url) in results.drain(..beyond) {
            self.by_url.remove(&url);
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: FetchLimits = FetchLimits {
        fetches: 4,
        results: 2,
        kept: Duration::from_secs(60),
        image_bytes_max: 1,
        stall: Duration::from_secs(1),
        whole: Duration::from_secs(1),
    };

    impl Fetches {
        fn with(&mut self, url: &str, ended: Ended) -> watch::Sender<Ended> {
            let (sender, receiver) = watch::channel(ended);
            self.by_url.insert(url.to_owned(), receiver);
            sender
        }

        fn urls(&self) -> Vec<&str> {
            self.by_url.keys().map(String::as_str).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn results_that_nobody_comes_for_are_few_and_end() {
        let mut fetches = Fetches::default();
        let result = || Some((Instant::now(), Err(FetchError::Empty)));
        let mut senders = vec![fetches.with("running", None)];
        for url in ["c", "b", "a"] {
            senders.push(fetches.with(url, result()));
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        drop(fetches.with("panicked", None));
        fetches.tidy(&LIMITS);
        assert_eq!(fetches.urls(), ["a", "b", "running"], "the oldest went");
        assert_eq!(fetches.running(), 1);
        tokio::time::advance(Duration::from_secs(45)).await;
        fetches.tidy(&LIMITS);
        assert_eq!(fetches.urls(), ["a", "running"]);
        tokio::time::advance(Duration::from_secs(10)).await;
        fetches.tidy(&LIMITS);
        assert_eq!(fetches.urls(), ["running"]);
    }
}
