//! What readers of the log see: an index of all entries, the newest of them in memory.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::frame;
use super::recover::WalError;
use super::segment::Segment;
use crate::codec;
use crate::disk::DiskFile;
use crate::raft_types::{Entry, LogId, Vote};

/// Entries kept in memory, in bytes of their encoded form; older ones are read from disk, where
/// who asks for them is that far behind: two of the largest batches.
pub(crate) const CACHE_BYTES_MAX: usize = 8 << 20;

/// Where an entry's payload lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Slot {
    log_id: LogId,
    /// Known once the flusher has written the entry.
    place: Option<Place>,
    entry: Option<Entry>,
}

/// The log as Raft sees it: changed at once, made durable behind.
#[derive(Debug)]
pub(crate) struct Index {
    slots: BTreeMap<u64, Slot>,
    /// Oldest entry that may still be in memory.
    cached_from: u64,
    cached_bytes: usize,
    pub(crate) cache_bytes_max: usize,
    files: BTreeMap<u64, LogFile>,
    pub(crate) purged: Option<LogId>,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
}

/// A segment to read from.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) salt: u32,
}

/// A read that needs the disk for some entries.
#[derive(Debug)]
pub(crate) enum Found {
    Cached(Entry),
    OnDisk(LogId, Place, LogFile),
}

impl Default for Index {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
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

impl Index {
    #[cfg(test)]
    pub(crate) fn cached_bytes(&self) -> usize {
        self.cached_bytes
    }

    pub(crate) fn last(&self) -> Option<LogId> {
        self.slots
            .last_key_value()
            .map(|(_, slot)| slot.log_id)
            .or(self.purged)
    }

    /// The index that the next entry must have.
    pub(crate) fn next_index(&self) -> u64 {
        self.last().map_or(0, |last| last.index + 1)
    }

    pub(crate) fn insert(&mut self, entry: Entry, place: Option<Place>) {
        let log_id = entry.log_id;
        self.slots.insert(
            log_id.index,
            Slot {
                log_id,
                place: None,
                entry: Some(entry),
            },
        );
        if let Some(place) = place {
            self.place(log_id, place);
        }
    }

    /// Notes where the flusher has put an entry, unless it was truncated since.
    pub(crate) fn place(&mut self, log_id: LogId, place: Place) {
        if let Some(slot) = self
            .slots
            .get_mut(&log_id.index)
            .filter(|s| s.log_id == log_id)
        {
            slot.place = Some(place);
            self.cached_bytes += place.bytes;
            self.evict();
        }
    }

    fn evict(&mut self) {
        while self.cached_bytes > self.cache_bytes_max {
            let Some((index, slot)) = self.slots.range_mut(self.cached_from..).next() else {
                break;
            };
            let Some(place) = slot.place else { break };
            self.cached_from = index + 1;
            if slot.entry.take().is_some() {
                self.cached_bytes -= place.bytes;
            }
        }
    }

    /// Forgets the entries from `index` on.
    pub(crate) fn truncate_from(&mut self, index: u64) {
        let gone = self.slots.split_off(&index);
        self.uncount(gone.values());
        self.cached_from = self.cached_from.min(index);
    }

    /// Forgets all entries up to `upto`.
    pub(crate) fn purge(&mut self, upto: LogId) {
        let kept = self.slots.split_off(&(upto.index + 1));
        let gone = std::mem::replace(&mut self.slots, kept);
        self.uncount(gone.values());
        self.purged = self.purged.max(Some(upto));
    }

    fn uncount<'a>(&mut self, gone: impl Iterator<Item = &'a Slot>) {
        let bytes: usize = gone
            .filter(|slot| slot.entry.is_some())
            .filter_map(|slot| slot.place.map(|place| place.bytes))
            .sum();
        self.cached_bytes = self.cached_bytes.saturating_sub(bytes);
    }

    pub(crate) fn add_file(&mut self, path: PathBuf, segment: &Segment) {
        let (file, salt) = (segment.file.clone(), segment.salt);
        self.files
            .insert(segment.number, LogFile { path, file, salt });
    }

    pub(crate) fn segments(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn remove_file(&mut self, segment: u64) {
        self.files.remove(&segment);
    }

    /// The entries of `range`, in order, each from memory or by its place.
    pub(crate) fn find(&self, range: Range<u64>) -> io::Result<Vec<Found>> {
        self.slots
            .range(range)
            .map(|(index, slot)| match (&slot.entry, slot.place) {
                (Some(entry), _) => Ok(Found::Cached(entry.clone())),
                (None, Some(place)) => {
                    let file = self.files.get(&place.segment).cloned();
                    let file = file.ok_or_else(|| lost(*index))?;
                    Ok(Found::OnDisk(slot.log_id, place, file))
                }
                (None, None) => Err(lost(*index)),
            })
            .collect()
    }
}

impl Found {
    /// The entry itself; reads the disk where needed.
    pub(crate) fn load(self) -> io::Result<Entry> {
        match self {
            Self::Cached(entry) => Ok(entry),
            Self::OnDisk(log_id, place, file) => {
                let entry: Entry = codec::decode(&file.payload(place)?)?;
                if entry.log_id == log_id {
                    Ok(entry)
                } else {
                    Err(lost(log_id.index))
                }
            }
        }
    }
}

impl LogFile {
    /// What was written at `place`, by its checksum.
    fn payload(&self, place: Place) -> io::Result<Vec<u8>> {
        let start = place.offset - frame::HEADER_BYTES as u64;
        let mut bytes = vec![0; frame::HEADER_BYTES + place.bytes];
        self.file.read_at(&mut bytes, start)?;
        match frame::read(&bytes, 0, self.salt) {
            Ok(found) => Ok(bytes.split_off(found.payload.start)),
            Err(reason) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                WalError::Corrupt {
                    path: self.path.clone(),
                    offset: usize::try_from(start).unwrap_or(usize::MAX),
                    reason: reason.to_owned(),
                },
            )),
        }
    }
}

fn lost(index: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("log entry {index} is not where it was put"),
    )
}
