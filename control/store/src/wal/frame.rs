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

use std::ops::Range;

/// Length of a frame's header, bytes; the payload follows it.
pub(crate) const HEADER_BYTES: usize = 32;
/// First four bytes of every frame, `LWMM` on disk; they tell a frame from zero fill.
const MAGIC: u32 = 0x4d4d_574c;
/// Frames begin at multiples of this many bytes.
const ALIGN: usize = 8;
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
    fn end(&self) -> usize {
        self.payload.end.next_multiple_of(ALIGN)
    }
}

/// The bytes that follow the last readable frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentTail {
    /// Zeros follow the last frame.
    Clean,
    /// Bytes of an interrupted write follow, which was never acknowledged.
    Torn,
    /// Damage among bytes that had been synced; the text says what is wrong.
    Corrupt(String),
}

/// The readable frames of a segment, the offset behind them and the state of the rest.
#[derive(Debug)]
pub(crate) struct SegmentScan {
    pub(crate) frames: Vec<LogFrame>,
    pub(crate) end: usize,
    pub(crate) tail: SegmentTail,
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
    out.resize(start + frame_bytes(payload.len()), 0);
    start + HEADER_BYTES
}

/// Reads all frames of a segment from `from` on.
pub(crate) fn scan(bytes: &[u8], from: usize, salt: u32) -> SegmentScan {
    let mut frames = Vec::new();
    let mut at = from;
    let reason = loop {
        match read(bytes, at, salt) {
            Ok(frame) => {
                at = frame.end();
                frames.push(frame);
            }
            Err(reason) => break reason,
        }
    };
    // A segment is zero-filled when it is made, so that zeros mean that nothing was ever written
    // there. Anything else must be classified before the caller may cut it.
    let tail = if bytes[at.min(bytes.len())..].iter().all(|byte| *byte == 0) {
        SegmentTail::Clean
    } else if proves_durable(bytes, at, salt) {
        SegmentTail::Corrupt(reason.to_owned())
    } else {
        SegmentTail::Torn
    };
    SegmentScan {
        frames,
        end: at,
        tail,
    }
}

/// Returns `true` if a frame behind `damage` was written after the bytes at `damage` had been synced.
fn proves_durable(bytes: &[u8], damage: usize, salt: u32) -> bool {
    // The length at the damage cannot be trusted to find the next frame, so every aligned offset is
    // tried. The salt in the checksums keeps payload bytes from being taken for a frame here.
    (damage..bytes.len())
        .step_by(ALIGN)
        .filter_map(|at| read(bytes, at, salt).ok())
        .any(|frame| frame.window as usize > damage)
}

/// Reads the frame at offset `at`.
///
/// # Errors
/// The reason why no intact frame begins there.
pub(crate) fn read(bytes: &[u8], at: usize, salt: u32) -> Result<LogFrame, &'static str> {
    let header = bytes
        .get(at..at + HEADER_BYTES)
        .ok_or("the segment ends inside a header")?;
    if le_u32(header, 0) != MAGIC {
        return Err("no record begins here");
    }
    if checksum(salt, &header[..HEADER_BYTES - 4]) != le_u32(header, 28) {
        return Err("the checksum of a record's header does not match");
    }
    // The header is intact from here on: a kind that this build does not know is a newer format.
    let kind = FrameKind::from_u8(header[4]).ok_or("a record of unknown kind")?;
    let start = at + HEADER_BYTES;
    let length = le_u32(header, 8) as usize;
    let payload = start..start + length;
    let content = bytes
        .get(payload.clone())
        .ok_or("the segment ends inside a record")?;
    if checksum(salt, content) != le_u32(header, 24) {
        return Err("the checksum of a record does not match");
    }
    let epoch = u64::from(le_u32(header, 16)) | (u64::from(le_u32(header, 20)) << 32);
    Ok(LogFrame {
        kind,
        epoch,
        window: le_u32(header, 12),
        payload,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u32 = 77;

    /// Returns a segment with three synced frames (epochs 1, 2, 3) and two frames of one unsynced
    /// window (epoch 4), and the offsets of the frames.
    fn segment() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for (epoch, text) in [
            (1, "one"),
            (2, "two"),
            (3, "three"),
            (4, "four"),
            (4, "five"),
        ] {
            starts.push(bytes.len());
            let window = if text == "five" {
                starts[3]
            } else {
                bytes.len()
            };
            let window = u32::try_from(window).unwrap();
            write(
                &mut bytes,
                SALT,
                FrameKind::Entry,
                epoch,
                window,
                text.as_bytes(),
            );
        }
        bytes.resize(bytes.len() + 256, 0);
        (bytes, starts)
    }

    #[test]
    fn reads_what_was_written() {
        let (bytes, starts) = segment();
        let scan = scan(&bytes, 0, SALT);
        assert_eq!(scan.tail, SegmentTail::Clean);
        assert_eq!(scan.frames.len(), 5);
        assert_eq!(&bytes[scan.frames[2].payload.clone()], b"three");
        assert_eq!(scan.frames[4].window as usize, starts[3]);
        assert_eq!(scan.end + 256, bytes.len());
    }

    #[test]
    fn every_damaged_byte_is_found_and_judged() {
        let (clean, starts) = segment();
        let used = scan(&clean, 0, SALT).end;
        for at in 0..used {
            let mut bytes = clean.clone();
            bytes[at] ^= 0x40;
            let found = scan(&bytes, 0, SALT);
            let frame = starts.iter().rposition(|s| *s <= at).unwrap();
            if found.frames.len() == 5 {
                // The padding alone is not covered by a checksum.
                continue;
            }
            assert_eq!(found.frames.len(), frame, "byte {at}");
            let durable = frame < 3;
            assert_eq!(
                matches!(found.tail, SegmentTail::Corrupt(_)),
                durable,
                "byte {at}"
            );
            assert_eq!(found.tail == SegmentTail::Torn, !durable, "byte {at}");
        }
    }

    #[test]
    fn a_cut_window_is_torn_wherever_it_is_cut() {
        let (clean, starts) = segment();
        let used = scan(&clean, 0, SALT).end;
        for cut in starts[3]..used {
            let mut bytes = clean.clone();
            bytes[cut..].fill(0);
            let found = scan(&bytes, 0, SALT);
            assert!(found.frames.len() >= 3, "cut {cut}");
            assert!(!matches!(found.tail, SegmentTail::Corrupt(_)), "cut {cut}");
        }
    }

    #[test]
    fn a_frame_inside_a_payload_proves_nothing() {
        let mut forged = Vec::new();
        write(&mut forged, 0, FrameKind::Entry, 9, 4096, b"forged");
        let mut bytes = Vec::new();
        write(&mut bytes, SALT, FrameKind::Entry, 1, 0, &forged);
        bytes[HEADER_BYTES - 1] ^= 1;
        bytes.resize(8192, 0);
        assert_eq!(scan(&bytes, 0, SALT).tail, SegmentTail::Torn);
    }
}
