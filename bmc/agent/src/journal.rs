//! The journal on disk: started orders and their ends.

use std::collections::VecDeque;
use std::sync::Arc;

use agents_kit::{KitError, StateDir};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::driver::{Action, Power};

/// Orders in the journal. Beyond it the oldest that control has acknowledged are evicted; others
/// are kept, however many.
const ENTRIES_MAX: usize = 2000;
const FILE: &str = "orders.json";
const INTERRUPTED: &str = "the agent was restarted in the middle of this order; it may have been \
    carried out, and is not repeated";

/// The end of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Empty on success.
    pub(crate) error: String,
    /// "on", "off" or "unknown".
    pub(crate) power: String,
    /// SHA-256 of the nonce in the BMC, hex. Empty means that none was ordered or written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) nonce_sha256: String,
}

impl End {
    pub(crate) fn ok(action: Action, power: Power) -> Self {
        Self {
            error: String::new(),
            power: power.as_str().into(),
            nonce_sha256: match action {
                Action::SetNonce(nonce) => hex::encode(nonce.sha256()),
                _ => String::new(),
            },
        }
    }

    pub(crate) fn failed(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            power: Power::Unknown.as_str().into(),
            nonce_sha256: String::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    id: String,
    idempotent: bool,
    end: Option<End>,
    acknowledged: bool,
}

/// The journal.
#[derive(Debug)]
pub(crate) struct Journal {
    dir: StateDir,
    entries: Mutex<VecDeque<Entry>>,
    /// One writer at a time, in order.
    writing: tokio::sync::Mutex<()>,
    /// Notified when there is an end to report.
    pub(crate) ended: Notify,
}

impl Journal {
    /// Opens the journal. Started orders without an end are dropped if they are idempotent, and
    /// executed again; others end here with an error.
    ///
    /// # Errors
    /// [`KitError`] if the file cannot be read: without it an order might be executed twice.
    pub(crate) fn open(dir: StateDir) -> Result<Arc<Self>, KitError> {
        let mut entries: VecDeque<Entry> = match dir.read(FILE)? {
            None => VecDeque::new(),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| KitError::Damaged {
                path: dir.path().join(FILE),
                reason: error.to_string(),
            })?,
        };
        entries.retain(|entry| entry.end.is_some() || !entry.idempotent);
        for entry in &mut entries {
            entry.end.get_or_insert_with(|| End::failed(INTERRUPTED));
        }
        let journal = Self {
            dir,
            entries: Mutex::new(entries),
            writing: tokio::sync::Mutex::new(()),
            ended: Notify::new(),
        };
        journal.ended.notify_one();
        Ok(Arc::new(journal))
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock()
    }

    /// `true` if an order was begun or has ended.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.entries().iter().any(|entry| entry.id == id)
    }

    /// Records the start of an order. It is on disk when this returns; on failure the order counts
    /// as not begun.
    pub(crate) async fn begin(&self, id: &str, idempotent: bool) -> Result<(), KitError> {
        let entry = Entry {
            id: id.to_owned(),
            idempotent,
            end: None,
            acknowledged: false,
        };
        // Added under the lock and only after it is on disk: another write would put the start of
        // an order on disk that is then not carried out.
        let _writing = self.writing.lock().await;
        let bytes = serde_json::to_vec(&self.entries().iter().chain([&entry]).collect::<Vec<_>>());
        self.put(bytes).await?;
        self.entries().push_back(entry);
        Ok(())
    }

    /// Records the end of an order, started or not, and triggers its report.
    pub(crate) async fn end(&self, id: &str, end: End) -> Result<(), KitError> {
        {
            let mut entries = self.entries();
            match entries.iter_mut().find(|entry| entry.id == id) {
                Some(entry) => entry.end = Some(end),
                None => entries.push_back(Entry {
                    id: id.to_owned(),
                    idempotent: true,
                    end: Some(end),
                    acknowledged: false,
                }),
            }
        }
        let written = self.write().await;
        self.ended.notify_one();
        written
    }

    /// Reports an end again, because control still lists the order.
    pub(crate) fn tell_again(&self, id: &str) {
        let mut entries = self.entries();
        if let Some(entry) = entries.iter_mut().find(|e| e.id == id && e.acknowledged) {
            entry.acknowledged = false;
            self.ended.notify_one();
        }
    }

    /// The oldest end that control has not acknowledged.
    pub(crate) fn untold(&self) -> Option<(String, End)> {
        let entries = self.entries();
        entries
            .iter()
            .filter(|e| !e.acknowledged)
            .find_map(|e| Some((e.id.clone(), e.end.clone()?)))
    }

    /// Control has acknowledged an end.
    pub(crate) async fn acknowledged(&self, id: &str) -> Result<(), KitError> {
        {
            let mut entries = self.entries();
            if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
                entry.acknowledged = true;
            }
            while entries.len() > ENTRIES_MAX
                && let Some(oldest) = entries.iter().position(|entry| entry.acknowledged)
            {
                entries.remove(oldest);
            }
        }
        self.write().await
    }

    async fn write(&self) -> Result<(), KitError> {
        let _writing = self.writing.lock().await;
        let bytes = serde_json::to_vec(&*self.entries());
        self.put(bytes).await
    }

    /// Replaces the file. The caller holds the lock `writing`.
    async fn put(&self, bytes: serde_json::Result<Vec<u8>>) -> Result<(), KitError> {
        let damaged = |error: String| KitError::Damaged {
            path: self.dir.path().join(FILE),
            reason: error,
        };
        let bytes = bytes.map_err(|error| damaged(error.to_string()))?;
        let dir = self.dir.clone();
        tokio::task::spawn_blocking(move || dir.write(FILE, &bytes))
            .await
            .map_err(|error| damaged(error.to_string()))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nonce::Nonce;

    fn open(path: &std::path::Path) -> Arc<Journal> {
        Journal::open(StateDir::open(path).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn ends_are_told_until_acknowledged_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let journal = open(&path);
        journal.begin("a", true).await.unwrap();
        assert_eq!(journal.untold(), None);
        journal
            .end("a", End::ok(Action::PowerOn, Power::On))
            .await
            .unwrap();
        let journal = open(&path);
        assert_eq!(
            journal.untold(),
            Some(("a".into(), End::ok(Action::PowerOn, Power::On)))
        );
        journal.acknowledged("a").await.unwrap();
        let journal = open(&path);
        assert!(journal.knows("a"));
        assert_eq!(journal.untold(), None);
        journal.tell_again("a");
        assert!(journal.untold().is_some());
    }

    #[tokio::test]
    async fn the_digest_of_a_nonce_is_told_again_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let nonce = Nonce::generate();
        let journal = open(&path);
        let end = End::ok(Action::SetNonce(nonce), Power::On);
        journal.end("nonce", end.clone()).await.unwrap();
        assert_eq!(open(&path).untold(), Some(("nonce".into(), end.clone())));
        assert_eq!(end.nonce_sha256, hex::encode(nonce.sha256()));
        let kept = std::fs::read_to_string(path.join(FILE)).unwrap();
        assert!(!kept.contains(nonce.text()), "the nonce itself is not kept");
        let before = r#"[{"id":"a","idempotent":true,"end":{"error":"","power":"on"},"acknowledged":false}]"#;
        std::fs::write(path.join(FILE), before).unwrap();
        let end = End::ok(Action::PowerOn, Power::On);
        assert_eq!(open(&path).untold(), Some(("a".into(), end)));
    }

    #[tokio::test]
    async fn what_a_restart_interrupts_is_repeated_only_when_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let journal = open(&path);
        journal.begin("on", true).await.unwrap();
        journal.begin("reset", false).await.unwrap();
        let journal = open(&path);
        assert!(!journal.knows("on"));
        let (id, end) = journal.untold().unwrap();
        assert_eq!((id.as_str(), end.error.as_str()), ("reset", INTERRUPTED));
    }

    #[tokio::test]
    async fn an_order_whose_start_is_not_on_disk_was_not_begun() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let journal = open(&path);
        // A directory in its place: the file cannot be replaced.
        std::fs::create_dir(path.join(FILE)).unwrap();
        journal.begin("reset", false).await.unwrap_err();
        assert!(!journal.knows("reset"));
        std::fs::remove_dir(path.join(FILE)).unwrap();
        journal.begin("other", false).await.unwrap();
        assert!(!open(&path).knows("reset"));
    }

    #[tokio::test]
    async fn only_acknowledged_entries_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(&dir.path().join("state"));
        journal.end("untold", End::failed("x")).await.unwrap();
        for n in 0..ENTRIES_MAX {
            let entry = Entry {
                id: n.to_string(),
                idempotent: true,
                end: Some(End::ok(Action::PowerOn, Power::On)),
                acknowledged: true,
            };
            journal.entries().push_back(entry);
        }
        journal.acknowledged("5").await.unwrap();
        assert!(journal.knows("untold"));
        assert!(!journal.knows("0"));
        assert_eq!(journal.entries().len(), ENTRIES_MAX);
    }
}
