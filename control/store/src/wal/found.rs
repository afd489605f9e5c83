//! An entry that a read of the log has found, and the read itself if it is on disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::WalError;
use super::frame;
use crate::codec;
use crate::disk::DiskFile;
use crate::raft_types::{Entry, LogId};

/// Position of an entry's payload on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLocation {
    /// Number of the segment.
    pub(crate) segment: u64,
    /// Offset of the payload in the segment.
    pub(crate) offset: u64,
    /// Length of the payload.
    pub(crate) bytes: usize,
}

/// A segment that entries are read from.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFile {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) salt: u32,
}

/// An entry that a read has found, in memory or by its location.
#[derive(Debug)]
pub(crate) enum FoundEntry {
    Cached(Entry),
    OnDisk(LogId, EntryLocation, SegmentFile),
}

impl FoundEntry {
    /// Returns the entry; reads the disk if it is not in memory.
    ///
    /// # Errors
    /// When the disk cannot be read, or holds something else at the entry's location.
    pub(crate) fn load(self) -> io::Result<Entry> {
        match self {
            Self::Cached(entry) => Ok(entry),
            Self::OnDisk(log_id, location, file) => {
                let entry: Entry = codec::decode(&file.read_payload(location)?)?;
                // The checksum covers the bytes and not the offset: an intact entry may still be
                // another one.
                if entry.log_id == log_id {
                    Ok(entry)
                } else {
                    Err(missing_entry(log_id.index))
                }
            }
        }
    }
}

impl SegmentFile {
    /// Reads the payload at `location` and verifies its checksum.
    fn read_payload(&self, location: EntryLocation) -> io::Result<Vec<u8>> {
        let start = location.offset - frame::HEADER_BYTES as u64;
        let mut bytes = vec![0; frame::HEADER_BYTES + location.bytes];
        self.file.read_at(&mut bytes, start)?;
        match frame::read(&bytes, 0, self.salt) {
            Ok(found) => Ok(bytes.split_off(found.payload.start)),
            Err(error) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                WalError::Corrupt {
                    path: self.path.clone(),
                    offset: usize::try_from(start).unwrap_or(usize::MAX),
                    reason: error.to_string(),
                },
            )),
        }
    }
}

/// The index refers to an entry that its file does not hold.
pub(crate) fn missing_entry(index: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("log entry {index} is not where it was put"),
    )
}
