//! The fetches of a node and their results, by URL.

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::error::FetchError;
use super::limits::FetchLimits;
use super::plan::FoundDigest;

/// The result of a fetch.
pub(super) type FetchResult = Result<FoundDigest, FetchError>;

/// A result and its time. `None` means that the fetch still runs.
pub(super) type FetchEnd = Option<(Instant, FetchResult)>;

/// The fetches of a node and their results.
#[derive(Default)]
pub(super) struct Fetches {
    pub(super) by_url: BTreeMap<String, watch::Receiver<FetchEnd>>,
    pub(super) tasks: JoinSet<()>,
}

impl Fetches {
    /// Number of fetches that still run.
    pub(super) fn running(&self) -> usize {
        let runs = |fetch: &&watch::Receiver<FetchEnd>| fetch.borrow().is_none();
        self.by_url.values().filter(runs).count()
    }

    /// Drops results that no caller took in time, fetches that ended without a result, and the
    /// oldest results beyond the bound.
    pub(super) fn tidy(&mut self, limits: &FetchLimits) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(error = %error, "a fetch of an image failed");
            }
        }
        self.by_url.retain(|_, fetch| match &*fetch.borrow() {
            Some((at, _)) => at.elapsed() < limits.kept,
            None => fetch.has_changed().is_ok(),
        });
        let ended = |fetch: &watch::Receiver<FetchEnd>| fetch.borrow().as_ref().map(|(at, _)| *at);
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
    use std::time::Duration;

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
        fn with(&mut self, url: &str, ended: FetchEnd) -> watch::Sender<FetchEnd> {
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
