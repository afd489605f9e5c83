//! The frame format of a segment, and how a damaged frame is classified: torn write or corruption.
//!
//! Layout of a frame, little-endian, padded to 8 bytes:
//! `magic u32 | kind u8, 3 zero | payload length u32 | window u32 | epoch u64 | payload crc u32 |
//! header crc u32 | payload`. Both checksums start from the segment's random salt, so that bytes
//! inside a command can never pass for a frame.
//!
//! *Epoch* counts completed fsyncs and *window* is the offset where the frames of this epoch
//! begin. A frame is written only after everything before its window was synced. So a readable
//! frame whose window begins behind a damaged offset proves that this offset was once durable, and
//! perhaps acknowledged: that is corruption, and nothing may be cut. Without such a proof the
//! damage is a write that a crash interrupted, and is cut.
//!
//! An intact frame of unknown kind was written by a newer program: the log is refused, and nothing
//! is cut.

use std::ops::Range;

/// Length of a frame's header, bytes; the payload follows it.
pub(crate) const HEADER_BYTES: usize = 32;
/// First four bytes of every frame, `LWMM` on disk; they tell a frame from zero fill.
const MAGIC: u32 = 0x4d4d_574c;
/// Frames begin at multiples of this many bytes.
pub(crate) const ALIGN: usize = 8;
/// Largest payload of one frame, bytes. The flusher refuses a longer record, which ends the
/// process; batches and commands are bounded far below.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// The record type of a frame; its number is stored in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// First frame of a segment: its owner, and vote, commit point and purge point as of its
    /// creation.
    Segment = 1,
    /// A log entry.
    Entry = 2,
    /// The vote of the node.
    Vote = 3,
    /// The commit point, unsynced.
    Committed = 4,
    /// Entries after an id are removed.
    Truncate = 5,
    /// Entries up to an id are removed.
    Purge = 6,
}

impl FrameKind {
    fn from_u8(byte: u8) -> Option<Self> {
        [
            Self::Segment,
            Self::Entry,
            Self::Vote,
            Self::Committed,
            Self::Truncate,
            Self::Purge,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// The reason why no frame of this build begins at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// No intact frame begins there.
    #[error("{0}")]
    Damaged(&'static str),
    /// The frame is intact, but only a newer format has its kind.
    #[error("a record of unknown kind {0}")]
    UnknownKind(u8),
}

/// One intact frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFrame {
    pub(crate) kind: FrameKind,
    pub(crate) epoch: u64,
    /// Offset of the first frame of the same epoch: everything before it was synced before this
    /// frame was written.
    pub(crate) window: u32,
    /// Byte range of the payload in the segment.
    pub(crate) payload: Range<usize>,
}

impl LogFrame {
    /// Returns the offset of the next frame.
    pub(crate) fn end(&self) -> usize {
        self.payload.end.next_multiple_of(ALIGN)
    }
}

/// Returns the bytes that a frame with `payload` bytes takes, header and padding included.
pub(crate) fn frame_bytes(payload: usize) -> usize {
    (HEADER_BYTES + payload).next_multiple_of(ALIGN)
}

/// Appends a frame to `out` and returns the offset of its payload in `out`.
pub(crate) fn write(
    out: &mut Vec<u8>,
    salt: u32,
    kind: FrameKind,
    epoch: u64,
    window: u32,
    payload: &[u8],
) -> usize {
    let start = out.len();
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&[kind as u8, 0, 0, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&window.to_le_bytes());
    out.extend_from_slice(&epoch.to_le_bytes());
    out.extend_from_slice(&checksum(salt, payload).to_le_bytes());
    // The header has a checksum of its own: the scan follows the length field to the next frame,
    // and a damaged length would send it to an arbitrary offset.
    let header_crc = checksum(salt, &out[start..]);
    out.extend_from_slice(&header_crc.to_le_bytes());
    out.extend_from_slice(payload);
    // Padded, so that the next frame begins where the scan for proofs looks for one.
    out.resize(start + frame_bytes(payload.len()), 0);
    start + HEADER_BYTES
}

/// Reads the frame at offset `at`.
///
/// # Errors
/// The reason why no frame of this build begins there.
pub(crate) fn read(bytes: &[u8], at: usize, salt: u32) -> Result<LogFrame, FrameError> {
    use FrameError::{Damaged, UnknownKind};
    let header = bytes
        .get(at..at + HEADER_BYTES)
        .ok_or(Damaged("the segment ends inside a header"))?;
    if le_u32(header, 0) != MAGIC {
        return Err(Damaged("no record begins here"));
    }
    // Before the length is used: a damaged one would put the payload anywhere.
    if checksum(salt, &header[..HEADER_BYTES - 4]) != le_u32(header, 28) {
        return Err(Damaged("the checksum of a record's header does not match"));
    }
    let start = at + HEADER_BYTES;
    let length = le_u32(header, 8) as usize;
    let payload = start..start + length;
    let content = bytes
        .get(payload.clone())
        .ok_or(Damaged("the segment ends inside a record"))?;
    if checksum(salt, content) != le_u32(header, 24) {
        return Err(Damaged("the checksum of a record does not match"));
    }
    // Both checksums match, so that this is no interrupted write: a kind that this build does not
    // know is of a newer format.
    let kind = FrameKind::from_u8(header[4]).ok_or(UnknownKind(header[4]))?;
    let epoch = u64::from(le_u32(header, 16)) | (u64::from(le_u32(header, 20)) << 32);
    Ok(LogFrame {
        kind,
        epoch,
        window: le_u32(header, 12),
        payload,
    })
}

/// Changes the kind of a frame and keeps it intact.
#[cfg(test)]
pub(crate) fn set_kind(frame: &mut [u8], salt: u32, kind: u8) {
    frame[4] = kind;
    let header_crc = checksum(salt, &frame[..HEADER_BYTES - 4]);
    frame[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&header_crc.to_le_bytes());
}

fn le_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .rev()
        .fold(0, |value, byte| (value << 8) | u32::from(*byte))
}

/// CRC-32 of `bytes`, started from the salt of the segment.
fn checksum(salt: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize()
}
