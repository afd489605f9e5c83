//! The installer that the partition names by URL: a pair of kernel and image, fetched and stored.
//!
//! One task fetches ([`run_installer`]), so that no file is fetched twice at a time. A pair is
//! installed by one rename and named by a key over its URLs and its content: a machine never gets
//! the kernel of one pair and the image of another, and neither file is served before both are
//! complete.

mod fetch;
mod fetch_error;
mod pair;
mod run;
mod store;

use std::path::Path;

use parking_lot::Mutex;
use pixie_boot::{InstallerSource, InstallerUrls};
use reqwest::Url;
use tokio::sync::watch;

pub(crate) use fetch::Fetcher;
pub use fetch_error::FetchSetupError;
pub(crate) use pair::{Pair, PairFile};
pub(crate) use run::run_installer;

use crate::clock::now_ms;
use store::PairStore;

/// Longest error text in `/healthz` and scripts, characters. The rest is cut.
const ERROR_LEN_MAX: usize = 300;

/// The wanted source, the pairs on disk, and the last error.
#[derive(Debug)]
pub(crate) struct InstallerState {
    wanted: watch::Sender<InstallerSource>,
    store: PairStore,
    trouble: Mutex<Option<Trouble>>,
}

/// The last failure to fetch or check an installer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// One line without secrets.
    pub(crate) text: String,
    /// Time of the failure, milliseconds since the epoch.
    pub(crate) at_ms: u64,
}

impl InstallerState {
    /// Opens the directory of the pairs and creates it if it is missing.
    ///
    /// # Errors
    /// If it cannot be created or read.
    pub(crate) fn open(dir: &Path) -> std::io::Result<Self> {
        Ok(Self {
            wanted: watch::Sender::new(InstallerSource::Unknown),
            store: PairStore::open(dir)?,
            trouble: Mutex::default(),
        })
    }

    /// Sets the wanted source. A change cancels a download of the previous one.
    pub(crate) fn want(&self, source: &InstallerSource) {
        self.wanted.send_if_modified(|wanted| {
            let is_new = wanted != source;
            if is_new {
                wanted.clone_from(source);
                // The error is about the URLs that were wanted before.
                self.set_trouble(None);
            }
            is_new
        });
    }

    /// The pair that was fetched from exactly the URLs of the source. `None` means that there is
    /// none.
    pub(crate) fn pair_of(&self, source: &InstallerSource) -> Option<Pair> {
        match source {
            InstallerSource::Urls(urls) => self.store.find(urls),
            _ => None,
        }
    }

    /// Path of a file of a pair. `None` means that there is no such pair.
    pub(crate) fn path(&self, key: &str, file: PairFile) -> Option<std::path::PathBuf> {
        self.store.path(key, file)
    }

    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().clone()
    }

    fn set_trouble(&self, text: Option<String>) {
        let trouble = text.map(|text| Trouble {
            text: text.chars().take(ERROR_LEN_MAX).collect(),
            at_ms: now_ms(),
        });
        *self.trouble.lock() = trouble;
    }

    /// The part of `/healthz` about the installer. No URL is shown with its user, password or query.
    pub(crate) fn health(&self) -> serde_json::Value {
        let source = self.wanted.borrow().clone();
        let name = match source {
            InstallerSource::Unknown => "unknown",
            InstallerSource::Own => "configuration",
            InstallerSource::Urls(_) => "partition",
            InstallerSource::Incomplete => "incomplete",
        };
        let (pair, trouble) = (self.pair_of(&source), self.trouble());
        let since_s = |at_ms: u64| now_ms().saturating_sub(at_ms) / 1000;
        serde_json::json!({
            "source": name,
            "kernel_url": urls(&source).map(|urls| redacted(&urls.kernel)),
            "image_url": urls(&source).map(|urls| redacted(&urls.image)),
            "pair": pair.as_ref().map(|pair| &pair.key),
            "kernel_bytes": pair.as_ref().map(|pair| pair.kernel.len),
            "image_bytes": pair.as_ref().map(|pair| pair.image.len),
            "fetched_s_ago": pair.as_ref().map(|pair| since_s(pair.fetched_ms)),
            "last_error": trouble.as_ref().map(|trouble| &trouble.text),
            "last_error_s_ago": trouble.as_ref().map(|trouble| since_s(trouble.at_ms)),
        })
    }
}

fn urls(source: &InstallerSource) -> Option<&InstallerUrls> {
    match source {
        InstallerSource::Urls(urls) => Some(urls),
        _ => None,
    }
}

/// A URL without its secrets: userinfo, and the query, which holds the signature of a presigned
/// URL.
pub(crate) fn redacted(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return "(not a URL)".into();
    };
    // These fail only for URLs that cannot have a user, and so contain none.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.set_query(None);
    url.set_fragment(None);
    if url.cannot_be_a_base() {
        return format!("{}:", url.scheme());
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_secrets() {
        for (url, shown) in [
            ("http://u:pw@h:81/a/k?sig=x#y", "http://h:81/a/k"),
            ("https://pw@h/k", "https://h/k"),
            ("data:secret", "data:"),
            ("secret", "(not a URL)"),
        ] {
            assert_eq!(redacted(url), shown);
        }
    }

    #[test]
    fn a_new_wish_forgets_the_error_of_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let state = InstallerState::open(&dir.path().join("installer")).unwrap();
        assert_eq!(state.health()["source"], "unknown");
        let wanted = InstallerSource::of("http://u:secret@h/k?secret", "http://h/i");
        state.want(&wanted);
        state.set_trouble(Some("x".repeat(2 * ERROR_LEN_MAX)));
        state.want(&wanted);
        let health = state.health();
        assert_eq!(health["kernel_url"], "http://h/k");
        assert!(!health.to_string().contains("secret"));
        assert_eq!(
            health["last_error"].as_str().map(str::len),
            Some(ERROR_LEN_MAX)
        );
        state.want(&InstallerSource::Own);
        assert_eq!(state.health()["last_error"], serde_json::Value::Null);
    }
}
