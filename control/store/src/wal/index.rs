//! The readers' view of the log: an index of all entries, with the newest entries in memory.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use super::found::{EntryLocation, FoundEntry, SegmentFile, missing_entry};
use super::segment::LogSegment;
use crate::raft_types::{Entry, LogId, Vote};

/// Bound of the written entries kept in memory, bytes of their encoded form: two batches of the
/// largest size. Older entries are read from disk; only a follower that far behind needs them.
/// Entries that are not on disk yet stay in memory beyond it.
pub(crate) const CACHE_BYTES_MAX: usize = 8 << 20;

#[derive(Debug)]
struct IndexedEntry {
    log_id: LogId,
    /// `None` until the flusher has written the entry.
    location: Option<EntryLocation>,
    /// `None` if the entry was evicted from memory.
    entry: Option<Entry>,
}

/// The log as Raft sees it. It changes with the call; the flusher makes the change durable later.
#[derive(Debug)]
pub(crate) struct LogIndex {
    entries: BTreeMap<u64, IndexedEntry>,
    /// No entry below this index is in memory: eviction goes on from here.
    cached_from: u64,
    /// Encoded size of the written entries in memory.
    cached_bytes: usize,
    pub(crate) cache_bytes_max: usize,
    /// Segments by their number.
    files: BTreeMap<u64, SegmentFile>,
    pub(crate) purged: Option<LogId>,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
}

impl Default for LogIndex {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            cached_from: 0,
            cached_bytes: 0,
            cache_bytes_max: CACHE_BYTES_MAX,
            files: BTreeMap::new(),
            purged: None,
            vote: None,
            committed: None,
        }
    }
}

impl LogIndex {
    #[cfg(test)]
    pub(crate) fn cached_bytes(&self) -> usize {
        self.cached_bytes
    }

    /// Returns the id of the last entry, or of the last purged entry when the log is empty.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.entries
            .last_key_value()
            .map(|(_, indexed)| indexed.log_id)
            .or(self.purged)
    }

    /// Returns the index that the next entry must have.
    pub(crate) fn next_index(&self) -> u64 {
        self.last().map_or(0, |last| last.index + 1)
    }

    /// Adds an entry; `location` is `None` while it is not written.
    pub(crate) fn insert(&mut self, entry: Entry, location: Option<EntryLocation>) {
        let log_id = entry.log_id;
        self.entries.insert(
            log_id.index,
            IndexedEntry {
                log_id,
                location: None,
                entry: Some(entry),
            },
        );
        if let Some(location) = location {
            self.set_location(log_id, location);
        }
    }

    /// Records where the flusher has written an entry. Ignored if the entry was truncated since.
    pub(crate) fn set_location(&mut self, log_id: LogId, location: EntryLocation) {
        // The index is ahead of the flusher: a truncation, and even another entry of the same
        // index, may be here already. Its location would point at the truncated entry.
        if let Some(indexed) = self
            .entries
            .get_mut(&log_id.index)
            .filter(|indexed| indexed.log_id == log_id)
        {
            indexed.location = Some(location);
            self.cached_bytes += location.bytes;
            self.evict();
        }
    }

    fn evict(&mut self) {
        while self.cached_bytes > self.cache_bytes_max {
            let Some((index, indexed)) = self.entries.range_mut(self.cached_from..).next() else {
                break;
            };
            // An entry without a location is not on disk yet: memory has the only copy of it.
            let Some(location) = indexed.location else {
                break;
            };
            self.cached_from = index + 1;
            if indexed.entry.take().is_some() {
                self.cached_bytes -= location.bytes;
            }
        }
    }

    /// Removes the entries from `index` on.
    pub(crate) fn truncate_from(&mut self, index: u64) {
        let removed = self.entries.split_off(&index);
        self.subtract_cached(removed.values());
        // The entries that come in their place are in memory again and must be found by eviction.
        self.cached_from = self.cached_from.min(index);
    }

    /// Removes the entries up to `upto`.
    pub(crate) fn purge(&mut self, upto: LogId) {
        let kept = self.entries.split_off(&(upto.index + 1));
        let removed = std::mem::replace(&mut self.entries, kept);
        self.subtract_cached(removed.values());
        self.purged = self.purged.max(Some(upto));
    }

    fn subtract_cached<'a>(&mut self, removed: impl Iterator<Item = &'a IndexedEntry>) {
        // As `set_location` counts them: entries in memory that have a location.
        let bytes: usize = removed
            .filter(|indexed| indexed.entry.is_some())
            .filter_map(|indexed| indexed.location.map(|location| location.bytes))
            .sum();
        self.cached_bytes = self.cached_bytes.saturating_sub(bytes);
    }

    /// Adds a segment to read from.
    pub(crate) fn add_file(&mut self, path: PathBuf, segment: &LogSegment) {
        let (file, salt) = (segment.file.clone(), segment.salt);
        self.files
            .insert(segment.number, SegmentFile { path, file, salt });
    }

    /// Returns the number of segments.
    pub(crate) fn segments(&self) -> usize {
        self.files.len()
    }

    /// Removes a segment. Reads that have its file already still succeed.
    pub(crate) fn remove_file(&mut self, segment: u64) {
        self.files.remove(&segment);
    }

    /// Returns the entries of `range` in order, each from memory or by its location.
    ///
    /// # Errors
    /// When an entry is neither in memory nor in a segment.
    pub(crate) fn find(&self, range: Range<u64>) -> io::Result<Vec<FoundEntry>> {
        self.entries
            .range(range)
            .map(
                |(index, indexed)| match (&indexed.entry, indexed.location) {
                    (Some(entry), _) => Ok(FoundEntry::Cached(entry.clone())),
                    (None, Some(location)) => {
                        // The handle goes along: a purge may delete the file before the read, and
                        // an open file stays readable.
                        let file = self.files.get(&location.segment).cloned();
                        let file = file.ok_or_else(|| missing_entry(*index))?;
                        Ok(FoundEntry::OnDisk(indexed.log_id, location, file))
                    }
                    (None, None) => Err(missing_entry(*index)),
                },
            )
            .collect()
    }
}
