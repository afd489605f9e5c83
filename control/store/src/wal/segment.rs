//! Segment files: made whole before they get their name, zero-filled so that a sync of later
//! frames need not write metadata.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::frame::{self, Kind};
use crate::codec;
use crate::disk::{Disk, DiskFile};
use crate::raft_types::{LogId, Vote};
use crate::random::random_id;

/// Bytes of an ordinary segment. A record that does not fit gets a segment of its own size.
pub(crate) const SEGMENT_BYTES: usize = 16 << 20;
/// Magic, salt and its checksum come before the first frame.
pub(crate) const PREAMBLE_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"MMWAL\0\0\x01";
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The first frame of a segment: what older, perhaps deleted, segments had established.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The cluster and node that own the log; a copied file is refused.
    pub(crate) cluster: Uuid,
    pub(crate) node: u64,
    pub(crate) number: u64,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
}

/// A segment open for writing.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) number: u64,
    pub(crate) salt: u32,
    pub(crate) capacity: usize,
}

pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}.wal"))
}

/// Numbers of the segments in `dir`, ascending. Removes half-made ones.
pub(crate) fn list(disk: &dyn Disk, dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for name in disk.list(dir)? {
        if name.ends_with(".tmp") {
            disk.remove_file(&dir.join(&name))?;
        } else if let Some(number) = name.strip_suffix(".wal").and_then(|n| n.parse().ok()) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Makes a segment with room for `payload` bytes and returns it with the end of its head.
/// The file is durable, name and all, when this returns.
pub(crate) fn create(
    disk: &dyn Disk,
    dir: &Path,
    head: &Head,
    epoch: u64,
    payload: usize,
    segment_bytes: usize,
) -> io::Result<(Segment, usize)> {
    let salt = salt();
    let mut bytes = preamble(salt);
    let window = PREAMBLE_BYTES as u32;
    frame::write(
        &mut bytes,
        salt,
        Kind::Segment,
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
    file.sync()?;
    disk.rename(&temporary, &name)?;
    disk.sync_dir(dir)?;
    Ok((
        Segment {
            file,
            number: head.number,
            salt,
            capacity,
        },
        bytes.len(),
    ))
}

/// Writes zeros over `from..to`.
pub(crate) fn zero(file: &dyn DiskFile, from: usize, to: usize) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let n = ZEROS.len().min(to - at);
        file.write_at(&ZEROS[..n], at as u64)?;
        at += n;
    }
    Ok(())
}

/// The salt in the first bytes of a segment, or why they are not a segment's.
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

fn salt() -> u32 {
    let bytes = random_id().into_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
