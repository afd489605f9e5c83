//! Recovery: reads the segments at the start.
//!
//! Order: segments ascending, frames in file order; a later record wins. An interrupted write at
//! the end of the last segment is cut; any other damage refuses the start and names the file.

use std::io;
use std::path::{Path, PathBuf};

use super::LogOwner;
use super::error::{WalError, io_error};
use super::found::EntryLocation;
use super::frame::{FrameKind, LogFrame};
use super::index::LogIndex;
use super::scan::{SegmentTail, scan};
use super::segment::{self, LogSegment, SegmentHead};
use crate::codec::{self, StoreCodecError};
use crate::disk::{DiskFile, StoreDisk};
use crate::raft_types::{Entry, LogId};

/// The content of the segments.
#[derive(Debug, Default)]
pub(crate) struct RecoveredLog {
    pub(crate) index: LogIndex,
    /// Numbers of the segments, each with the highest entry index that was ever written to it.
    pub(crate) segments: Vec<(u64, Option<u64>)>,
    /// The last segment and the offset behind its last frame. `None` in an empty directory.
    pub(crate) active: Option<(LogSegment, usize)>,
    /// Highest epoch of all frames.
    pub(crate) epoch: u64,
    /// Bytes of an interrupted write that were cut.
    pub(crate) cut_bytes: usize,
    /// The last gap between entries, which a later purge record must explain.
    gap: Option<LogGap>,
}

/// Entries that are missing before an entry.
#[derive(Debug)]
struct LogGap {
    before: u64,
    path: PathBuf,
    offset: usize,
}

/// Reads the log in `dir` and makes its content durable.
///
/// # Errors
/// When a file operation fails, synced bytes are damaged, or the log is another node's or of a
/// newer format.
pub(crate) fn recover(
    disk: &dyn StoreDisk,
    dir: &Path,
    owner: LogOwner,
) -> Result<RecoveredLog, WalError> {
    let numbers = segment::list(disk, dir).map_err(|e| io_error("list", dir, e))?;
    // A process that was killed may have renamed a segment without a sync of the directory. The
    // next appends go into that segment, so its name must be durable before they are acknowledged.
    disk.sync_dir(dir).map_err(|e| io_error("sync", dir, e))?;
    let mut recovered = RecoveredLog::default();
    for (at, number) in numbers.iter().enumerate() {
        // Segments are deleted from the oldest on, so the numbers of the rest have no gap.
        if at > 0 && numbers[at - 1] + 1 != *number {
            return Err(WalError::Corrupt {
                path: segment::path(dir, numbers[at - 1] + 1),
                offset: 0,
                reason: "this segment is missing, others after it are there".to_owned(),
            });
        }
        let reader = SegmentReplay {
            disk,
            path: segment::path(dir, *number),
            owner,
            number: *number,
        };
        reader.read(&mut recovered, at + 1 == numbers.len())?;
    }
    // Judged at the end: the purge record that explains a gap lies behind the gap.
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

/// Replays one segment into a [`RecoveredLog`].
struct SegmentReplay<'a> {
    disk: &'a dyn StoreDisk,
    path: PathBuf,
    owner: LogOwner,
    number: u64,
}

impl SegmentReplay<'_> {
    /// Reads the segment; `last` is `true` for the newest segment.
    fn read(&self, into: &mut RecoveredLog, last: bool) -> Result<(), WalError> {
        let bytes = self.disk.read(&self.path);
        let bytes = bytes.map_err(|e| io_error("read", &self.path, e))?;
        let salt = segment::read_preamble(&bytes).map_err(|reason| self.corrupt(0, reason))?;
        let scanned = scan(&bytes, segment::PREAMBLE_BYTES, salt);
        let file = self.disk.open(&self.path);
        let file = file.map_err(|e| io_error("open", &self.path, e))?;

        // Before anything is cut: this may be the log of another node, which must not be changed.
        self.check_head(&bytes, scanned.frames.first())?;
        // A torn end is legal in the last segment alone: the flusher syncs a segment completely
        // before it makes the next one.
        match scanned.tail {
            SegmentTail::Clean if last => rewrite(&*file, &bytes, scanned.end)
                .map_err(|e| io_error("write again", &self.path, e))?,
            SegmentTail::Clean => {}
            SegmentTail::Torn if last => {
                into.cut_bytes = cut(&*file, &bytes, scanned.end)
                    .map_err(|e| io_error("cut the torn end of", &self.path, e))?;
            }
            SegmentTail::Torn => return Err(self.corrupt(scanned.end, "a record is unreadable")),
            SegmentTail::Corrupt(reason) => return Err(self.corrupt(scanned.end, reason)),
            SegmentTail::Newer { kind, at } => {
                return Err(WalError::Newer {
                    path: self.path.clone(),
                    offset: at,
                    kind,
                });
            }
        }
        let segment = LogSegment {
            file,
            number: self.number,
            salt,
            capacity: bytes.len(),
        };
        into.index.add_file(self.path.clone(), &segment);
        into.segments.push((self.number, None));
        for frame in &scanned.frames {
            self.replay(&bytes, frame, into)?;
        }
        if last {
            into.active = Some((segment, scanned.end));
        }
        Ok(())
    }

    /// Refuses the segment of another cluster or node, or under another number.
    fn check_head(&self, bytes: &[u8], first: Option<&LogFrame>) -> Result<(), WalError> {
        let at = segment::PREAMBLE_BYTES;
        let frame = first
            .filter(|frame| frame.kind == FrameKind::Segment)
            .ok_or_else(|| self.corrupt(at, "the segment's first record is unreadable"))?;
        let head: SegmentHead = self.decode(bytes, frame)?;
        if head.cluster != self.owner.cluster || head.node != self.owner.node {
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

    /// Applies one record to the recovered log.
    fn replay(
        &self,
        bytes: &[u8],
        frame: &LogFrame,
        into: &mut RecoveredLog,
    ) -> Result<(), WalError> {
        into.epoch = into.epoch.max(frame.epoch);
        let index = &mut into.index;
        match frame.kind {
            FrameKind::Segment => {
                let head: SegmentHead = self.decode(bytes, frame)?;
                index.vote = head.vote;
                index.committed = head.committed;
                // The records that set these may be in segments that are deleted.
                if let Some(purged) = head.purged {
                    index.purge(purged);
                }
            }
            FrameKind::Entry => {
                let entry: Entry = self.decode(bytes, frame)?;
                let log_id = entry.log_id;
                if let Some(highest) = into.segments.last_mut().map(|(_, highest)| highest) {
                    *highest = (*highest).max(Some(log_id.index));
                }
                let place = EntryLocation {
                    segment: self.number,
                    offset: frame.payload.start as u64,
                    bytes: frame.payload.len(),
                };
                self.replay_entry(into, frame, entry, place);
            }
            FrameKind::Vote => index.vote = Some(self.decode(bytes, frame)?),
            FrameKind::Committed => index.committed = self.decode(bytes, frame)?,
            FrameKind::Truncate => {
                let last: Option<LogId> = self.decode(bytes, frame)?;
                index.truncate_from(last.map_or(0, |last| last.index + 1));
            }
            FrameKind::Purge => index.purge(self.decode(bytes, frame)?),
        }
        Ok(())
    }

    /// Adds an entry to the index. Entries up to the purge point may still be in a kept segment.
    /// Segments before it may be deleted, which shows as a gap that a later purge must cover.
    fn replay_entry(
        &self,
        into: &mut RecoveredLog,
        frame: &LogFrame,
        entry: Entry,
        place: EntryLocation,
    ) {
        let index = &mut into.index;
        let at = entry.log_id.index;
        if index.purged.is_some_and(|purged| at <= purged.index) {
            return;
        }
        let next = index.next_index();
        if at > next {
            let (path, offset) = (self.path.clone(), frame.payload.start);
            into.gap = Some(LogGap {
                before: at,
                path,
                offset,
            });
            // Entries before the gap are purged, or the log is refused at the end of the recovery.
            index.truncate_from(0);
        } else if at < next {
            // The later record wins, and nothing of the replaced entries may follow it.
            index.truncate_from(at);
        }
        index.insert(entry, Some(place));
    }

    fn decode<T: serde::de::DeserializeOwned>(
        &self,
        bytes: &[u8],
        frame: &LogFrame,
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

/// Makes the frames of a segment durable by writing and syncing them again.
///
/// The process before may have written them without a sync. They become visible to Raft now, and
/// the window of the next frames would claim that they are durable. A sync alone is not enough:
/// when the last sync failed, the kernel may have marked the pages clean, and a sync writes only
/// dirty pages.
fn rewrite(file: &dyn DiskFile, bytes: &[u8], end: usize) -> io::Result<()> {
    file.write_at(&bytes[..end], 0)?;
    file.sync()
}

/// Zeroes the torn bytes behind `end` and makes the rest durable. Returns the number of torn
/// bytes.
fn cut(file: &dyn DiskFile, bytes: &[u8], end: usize) -> io::Result<usize> {
    let dirty = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    // All of the rest, not only the torn frame: a readable frame behind it, left over from the same
    // write, would otherwise come back behind the next append and pass for part of the log.
    segment::zero(file, end, bytes.len())?;
    rewrite(file, bytes, end)?;
    Ok(dirty.saturating_sub(end))
}
