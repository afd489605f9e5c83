//! The number of BMCs that this program reads, beside that of the program before it.
//!
//! A program that reads fewer than half of them is not healthy until it reads as many once: a new one on
//! trial is not confirmed, and the rollout that named it goes no further.

use std::sync::Arc;

use agents_kit::{KitError, StateDir};
use base_runtime::Chain;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

const FILE: &str = "reach.json";

/// The counts of a program, on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ReachRecord {
    /// Version of the program.
    version: String,
    /// BMCs that its last round read.
    reached: usize,
    /// BMCs that the last round of the program before it read. `None` if there was none, or if this
    /// program has read half of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<usize>,
}

/// The record at the start of a program. `stored` is that of the last program that ran.
fn started(stored: Option<ReachRecord>, version: &str) -> ReachRecord {
    let new = |before| ReachRecord {
        version: version.to_owned(),
        reached: 0,
        before,
    };
    match stored {
        None => new(None),
        Some(own) if own.version == version => own,
        Some(other) => new((other.reached > 0).then_some(other.reached)),
    }
}

/// The record after a round that read so many BMCs.
fn after_round(record: &ReachRecord, reached: usize) -> ReachRecord {
    // BMCs that are lost later are not lost by the update.
    let before = record
        .before
        .filter(|before| reached.saturating_mul(2) < *before);
    ReachRecord {
        version: record.version.clone(),
        reached,
        before,
    }
}

/// The counts of the program that runs.
#[derive(Debug)]
pub struct Reach {
    dir: StateDir,
    record: Mutex<ReachRecord>,
}

impl Reach {
    /// Opens the counts for a program of a version. A damaged file counts as none: it decides about no
    /// order.
    ///
    /// # Errors
    /// [`KitError`] if the file cannot be read.
    pub(crate) fn open(dir: StateDir, version: &str) -> Result<Arc<Self>, KitError> {
        let bytes = dir.read(FILE)?;
        let stored = bytes.and_then(|bytes| {
            let read = serde_json::from_slice(&bytes);
            read.inspect_err(|error| tracing::warn!(file = FILE, %error, "file is damaged"))
                .ok()
        });
        Ok(Arc::new(Self {
            dir,
            record: Mutex::new(started(stored, version)),
        }))
    }

    /// Notes how many BMCs a round has read.
    pub(crate) async fn note(&self, reached: usize) {
        let next = {
            let mut record = self.record.lock();
            *record = after_round(&record, reached);
            record.clone()
        };
        if let Err(error) = self.write(next).await {
            tracing::warn!(error = %Chain(&error), "the number of BMCs that are read is not kept");
        }
    }

    async fn write(&self, record: ReachRecord) -> Result<(), KitError> {
        let dir = self.dir.clone();
        let damaged = |reason: String| KitError::Damaged {
            path: self.dir.path().join(FILE),
            reason,
        };
        let bytes = serde_json::to_vec(&record).map_err(|error| damaged(error.to_string()))?;
        let written = tokio::task::spawn_blocking(move || match dir.read(FILE)? {
            Some(same) if same == bytes => Ok(()),
            _ => dir.write(FILE, &bytes),
        });
        written.await.map_err(|error| damaged(error.to_string()))?
    }

    /// The reason why the agent does not do its work. `None` means that it does.
    #[must_use]
    pub fn ailment(&self) -> Option<String> {
        let record = self.record.lock();
        let before = record.before?;
        let reached = record.reached;
        Some(format!(
            "it reads {reached} BMCs, and the program before it read {before}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: &str, reached: usize, before: Option<usize>) -> ReachRecord {
        ReachRecord {
            version: version.to_owned(),
            reached,
            before,
        }
    }

    #[test]
    fn a_program_is_compared_with_the_one_before_it() {
        for (what, stored, expected) in [
            ("the first one", None, record("1.3.0", 0, None)),
            (
                "another one before",
                Some(record("1.2.0", 12, None)),
                record("1.3.0", 0, Some(12)),
            ),
            (
                "one that read none",
                Some(record("1.2.0", 0, Some(12))),
                record("1.3.0", 0, None),
            ),
            (
                "started again",
                Some(record("1.3.0", 3, Some(12))),
                record("1.3.0", 3, Some(12)),
            ),
        ] {
            assert_eq!(started(stored, "1.3.0"), expected, "{what}");
        }
    }

    #[test]
    fn a_program_that_reads_half_of_the_bmcs_once_is_as_good() {
        let cases: [(Option<usize>, &[usize], bool); 10] = [
            (None, &[], true),
            (None, &[0], true),
            (Some(1), &[], false),
            (Some(1), &[0, 0], false),
            (Some(1), &[0, 1], true),
            (Some(12), &[0, 5], false),
            (Some(12), &[5, 6], true),
            (Some(13), &[6], false),
            (Some(13), &[7], true),
            // They go away later.
            (Some(12), &[12, 0], true),
        ];
        for (before, rounds, is_healthy) in cases {
            let start = record("1.3.0", 0, before);
            let end = rounds
                .iter()
                .fold(start, |record, reached| after_round(&record, *reached));
            assert_eq!(end.before.is_none(), is_healthy, "{before:?} {rounds:?}");
        }
    }

    #[tokio::test]
    async fn the_next_program_knows_what_the_last_one_read() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::open(&folder.path().join("state")).unwrap();
        let open = |version: &str| Reach::open(dir.clone(), version).unwrap();
        let old = open("1.2.0");
        assert_eq!(old.ailment(), None);
        old.note(4).await;
        let new = open("1.3.0");
        let reason = "it reads 0 BMCs, and the program before it read 4";
        assert_eq!(new.ailment().as_deref(), Some(reason));
        new.note(1).await;
        // It is started again, and the old one after it.
        assert!(open("1.3.0").ailment().unwrap().contains("reads 1 BMCs"));
        let back = open("1.2.0");
        back.note(4).await;
        assert_eq!(back.ailment(), None);
        let again = open("1.3.0");
        assert!(again.ailment().is_some());
        again.note(2).await;
        assert_eq!(again.ailment(), None);
        dir.write(FILE, b"{").unwrap();
        assert_eq!(open("1.4.0").ailment(), None, "a damaged file");
    }
}
