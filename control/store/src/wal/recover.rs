//! Reads the segments back after a start.
//!
//! Order: segments ascending, frames in file order; a later record wins. An interrupted write at
//! the very end is cut; any other damage refuses the start and names the file.

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::frame::{self, Frame, Kind, Tail};
use super::index::{Index, Place};
use super::segment::{self, Head, Segment};
use crate::codec::{self, StoreCodecError};
use crate::disk::{Disk, DiskFile};
use crate::raft_types::{Entry, LogId};

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// A file operation failed.
    #[error("{action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Damage inside what had been made durable; acknowledged writes may be in it.
    #[error(
        "the raft log {path} is damaged at byte {offset}: {reason}. Nothing was changed. \
         The damaged part had been acknowledged, so it is not cut: restore this data directory \
         from a backup, or, when other members of the cluster are healthy, empty it and join \
         again under a new node id. Do not delete or edit this file alone"
    )]
    Corrupt {
        /// The damaged segment.
        path: PathBuf,
        /// Where the damage begins.
        offset: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The segment was written by another cluster or node.
    #[error(
        "the raft log {path} belongs to cluster {cluster}, node {node}, not to this data \
         directory: data directories cannot be mixed. Put the right log back"
    )]
    Foreign {
        /// The foreign segment.
        path: PathBuf,
        /// Whose it is.
        cluster: Uuid,
        /// Whose it is.
        node: u64,
    },
}

/// What the segments held.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) index: Index,
    /// Segments and the highest entry index each of them ever held.
    pub(crate) segments: Vec<(u64, Option<u64>)>,
    /// The segment to go on with, and where.
    pub(crate) active: Option<(Segment, usize)>,
    pub(crate) epoch: u64,
    /// Bytes of interrupted writes that were cut.
    pub(crate) cut_bytes: usize,
    /// A gap before this entry, to be explained by a purge that is recorded later.
    gap: Option<Gap>,
}

#[derive(Debug)]
struct Gap {
    before: u64,
    path: PathBuf,
    offset: usize,
}

pub(crate) fn recover(
    disk: &dyn Disk,
    dir: &Path,
    cluster: Uuid,
    node: u64,
) -> Result<Recovered, WalError> {
    let numbers = segment::list(disk, dir).map_err(|e| io_error("list", dir, e))?;
    // A process that was killed may have named a segment and not made the name durable.
    disk.sync_dir(dir).map_err(|e| io_error("sync", dir, e))?;
    let mut recovered = Recovered::default();
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 && numbers[at - 1] + 1 != *number {
            return Err(WalError::Corrupt {
                path: segment::path(dir, numbers[at - 1] + 1),
                offset: 0,
                reason: "this segment is missing, others after it are there".to_owned(),
            });
        }
        let reader = Reader {
            disk,
            path: segment::path(dir, *number),
            cluster,
            node,
            number: *number,
        };
        reader.read(&mut recovered, at + 1 == numbers.len())?;
    }
    let purged = recovered.index.purged.map_or(0, |purged| purged.index + 1);
    match recovered.gap.take() {
        Some(gap) if purged < gap.before => Err(WalError::Corrupt {
            path: gap.path,
            offset: gap.offset,
            reason: format!("the entries before entry {} are missing", gap.before),
        }),
        _ => Ok(recovered),
    }
}

struct Reader<'a> {
    disk: &'a dyn Disk,
    path: PathBuf,
    cluster: Uuid,
    node: u64,
    number: u64,
}

impl Reader<'_> {
    fn read(&self, into: &mut Recovered, last: bool) -> Result<(), WalError> {
        let bytes = self.disk.read(&self.path);
        let bytes = bytes.map_err(|e| io_error("read", &self.path, e))?;
        let salt = segment::read_preamble(&bytes).map_err(|reason| self.corrupt(0, reason))?;
        let scan = frame::scan(&bytes, segment::PREAMBLE_BYTES, salt);
        let file = self.disk.open(&self.path);
        let file = file.map_err(|e| io_error("open", &self.path, e))?;

        // Before anything is cut: this may be the log of somebody else.
        self.check_head(&bytes, scan.frames.first())?;
        match scan.tail {
            Tail::Clean if last => write_again(&*file, &bytes, scan.end)
                .map_err(|e| io_error("write again", &self.path, e))?,
            Tail::Clean => {}
            Tail::Torn if last => {
                into.cut_bytes = cut(&*file, &bytes, scan.end)
                    .map_err(|e| io_error("cut the torn end of", &self.path, e))?;
            }
            Tail::Torn => return Err(self.corrupt(scan.end, "a record is unreadable")),
            Tail::Corrupt(reason) => return Err(self.corrupt(scan.end, reason)),
        }
        let segment = Segment {
            file,
            number: self.number,
            salt,
            capacity: bytes.len(),
        };
        into.index.add_file(self.path.clone(), &segment);
        into.segments.push((self.number, None));
        for frame in &scan.frames {
            self.replay(&bytes, frame, into)?;
        }
        if last {
            into.active = Some((segment, scan.end));
        }
        Ok(())
    }

    fn check_head(&self, bytes: &[u8], first: Option<&Frame>) -> Result<(), WalError> {
        let at = segment::PREAMBLE_BYTES;
        let frame = first
            .filter(|frame| frame.kind == Kind::Segment)
            .ok_or_else(|| self.corrupt(at, "the segment's first record is unreadable"))?;
        let head: Head = self.decode(bytes, frame)?;
        if head.cluster != self.cluster || head.node != self.node {
            let path = self.path.clone();
            return Err(WalError::Foreign {
                path,
                cluster: head.cluster,
                node: head.node,
            });
        }
        if head.number != self.number {
            return Err(self.corrupt(at, format!("the file holds segment {}", head.number)));
        }
        Ok(())
    }

    fn replay(&self, bytes: &[u8], frame: &Frame, into: &mut Recovered) -> Result<(), WalError> {
        into.epoch = into.epoch.max(frame.epoch);
        let index = &mut into.index;
        match frame.kind {
            Kind::Segment => {
                let head: Head = self.decode(bytes, frame)?;
                index.vote = head.vote;
                index.committed = head.committed;
                if let Some(purged) = head.purged {
                    index.purge(purged);
                }
            }
            Kind::Entry => {
                let entry: Entry = self.decode(bytes, frame)?;
                let log_id = entry.log_id;
                if let Some(highest) = into.segments.last_mut().map(|(_, highest)| highest) {
                    *highest = (*highest).max(Some(log_id.index));
                }
                let place = Place {
                    segment: self.number,
                    offset: frame.payload.start as u64,
                    bytes: frame.payload.len(),
                };
                self.replay_entry(into, frame, entry, place);
            }
            Kind::Vote => index.vote = Some(self.decode(bytes, frame)?),
            Kind::Committed => index.committed = self.decode(bytes, frame)?,
            Kind::Truncate => {
                let last: Option<LogId> = self.decode(bytes, frame)?;
                index.truncate_from(last.map_or(0, |last| last.index + 1));
            }
            Kind::Purge => index.purge(self.decode(bytes, frame)?),
        }
        Ok(())
    }

    /// Entries up to the purged one may still lie in a kept segment. Segments before it may be
    /// gone, which shows as a gap that a later purge must cover.
    fn replay_entry(&self, into: &mut Recovered, frame: &Frame, entry: Entry, place: Place) {
        let index = &mut into.index;
        let at = entry.log_id.index;
        if index.purged.is_some_and(|purged| at <= purged.index) {
            return;
        }
        let next = index.next_index();
        if at > next {
            let (path, offset) = (self.path.clone(), frame.payload.start);
            into.gap = Some(Gap {
                before: at,
                path,
                offset,
            });
            index.truncate_from(0);
        } else if at < next {
            index.truncate_from(at);
        }
        index.insert(entry, Some(place));
    }

    fn decode<T: serde::de::DeserializeOwned>(
        &self,
        bytes: &[u8],
        frame: &Frame,
    ) -> Result<T, WalError> {
        codec::decode(&bytes[frame.payload.clone()]).map_err(|e: StoreCodecError| {
            self.corrupt(
                frame.payload.start,
                format!("the record is intact, but {e}"),
            )
        })
    }

    fn corrupt(&self, offset: usize, reason: impl Into<String>) -> WalError {
        WalError::Corrupt {
            path: self.path.clone(),
            offset,
            reason: reason.into(),
        }
    }
}

/// Makes what is there durable. What an ended process had written, but not synced, is no safer
/// now: the next frames would claim that it is, and so would Raft. And when its last sync failed,
/// the kernel may take for clean what is not on disk: only what is written again is synced.
fn write_again(file: &dyn DiskFile, bytes: &[u8], end: usize) -> io::Result<()> {
    file.write_at(&bytes[..end], 0)?;
    file.sync()
}

fn cut(file: &dyn DiskFile, bytes: &[u8], end: usize) -> io::Result<usize> {
    let dirty = bytes
        .iter()
        .rposition(|b| *b != 0)
        .map_or(0, |last| last + 1);
    segment::zero(file, end, bytes.len())?;
    write_again(file, bytes, end)?;
    Ok(dirty.saturating_sub(end))
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> WalError {
    WalError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}
