//! Segment files: complete before they get their name, and zero-filled so that a sync of later
//! frames writes no metadata.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::frame::{self, FrameKind};
use crate::codec;
use crate::disk::{DiskFile, StoreDisk};
use crate::raft_types::{LogId, Vote};
use crate::random::random_id;

/// Default size of a segment, bytes. A record that does not fit into one gets a segment of its own
/// size.
pub(crate) const SEGMENT_BYTES: usize = 16 << 20;
/// Bytes before the first frame: magic, salt and their checksum.
pub(crate) const PREAMBLE_BYTES: usize = 16;
/// First bytes of a segment; the last one is the version of the format.
const MAGIC: &[u8; 8] = b"MMWAL\0\0\x01";
/// Zeros that are written at once while a segment is filled.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The first frame of a segment. It repeats vote, commit point and purge point of the segments
/// before, which may be deleted since.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SegmentHead {
    /// Cluster that owns the log; the segment of another cluster is refused.
    pub(crate) cluster: Uuid,
    /// Node that owns the log; the segment of another node is refused.
    pub(crate) node: u64,
    /// Number of the segment, the same as in its name.
    pub(crate) number: u64,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
}

/// A segment open for writing.
#[derive(Debug)]
pub(crate) struct LogSegment {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) number: u64,
    /// Start value of all checksums of the segment.
    pub(crate) salt: u32,
    /// Size of the file, bytes.
    pub(crate) capacity: usize,
}

/// Returns the path of segment `number` in `dir`.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}.wal"))
}

/// Returns the numbers of the segments in `dir`, ascending, and removes unfinished ones.
pub(crate) fn list(disk: &dyn StoreDisk, dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for name in disk.list(dir)? {
        // A crash came before the rename in `create`: nothing was ever appended to this file.
        if name.ends_with(".tmp") {
            disk.remove_file(&dir.join(&name))?;
        } else if let Some(number) = name.strip_suffix(".wal").and_then(|stem| stem.parse().ok()) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Makes a segment with room for `payload` bytes and returns it with the offset behind its head.
/// The content and the name of the file are durable when this returns.
pub(crate) fn create(
    disk: &dyn StoreDisk,
    dir: &Path,
    head: &SegmentHead,
    epoch: u64,
    payload: usize,
    segment_bytes: usize,
) -> io::Result<(LogSegment, usize)> {
    // Fresh for each segment: a frame copied from another segment, or forged inside a command,
    // does not have matching checksums here.
    let salt = random_salt();
    let mut bytes = preamble(salt);
    let window = PREAMBLE_BYTES as u32;
    frame::write(
        &mut bytes,
        salt,
        FrameKind::Segment,
        epoch,
        window,
        &codec::encode(head)?,
    );
    let capacity = segment_bytes.max(bytes.len() + frame::frame_bytes(payload));

    let name = path(dir, head.number);
    let temporary = name.with_extension("tmp");
    let file = disk.create(&temporary)?;
    file.write_at(&bytes, 0)?;
    zero(&*file, bytes.len(), capacity)?;
    // Content first, then the name, then the directory: a segment that has its name is complete
    // after every crash, so that recovery refuses an unreadable head instead of guessing. The sync
    // of the directory comes before the first append: entries synced into a file whose name is
    // lost would be lost with it.
    file.sync()?;
    disk.rename(&temporary, &name)?;
    disk.sync_dir(dir)?;
    Ok((
        LogSegment {
            file,
            number: head.number,
            salt,
            capacity,
        },
        bytes.len(),
    ))
}

/// Overwrites the bytes `from..to` of `file` with zeros.
pub(crate) fn zero(file: &dyn DiskFile, from: usize, to: usize) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let count = ZEROS.len().min(to - at);
        file.write_at(&ZEROS[..count], at as u64)?;
        at += count;
    }
    Ok(())
}

/// Returns the salt from the preamble of a segment.
///
/// # Errors
/// The reason why `bytes` do not begin with the preamble of a segment.
pub(crate) fn read_preamble(bytes: &[u8]) -> Result<u32, &'static str> {
    let head = bytes
        .get(..PREAMBLE_BYTES)
        .ok_or("shorter than a segment's preamble")?;
    let salt: [u8; 4] = head[8..12].try_into().map_err(|_| "unreadable preamble")?;
    let salt = u32::from_le_bytes(salt);
    if preamble(salt) == head {
        Ok(salt)
    } else {
        Err("not a segment, or its preamble is damaged")
    }
}

fn preamble(salt: u32) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&salt.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn random_salt() -> u32 {
    let bytes = random_id().into_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
