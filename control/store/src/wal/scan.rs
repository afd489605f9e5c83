//! Scan of a whole segment: its readable frames, and the classification of the bytes behind them.

use super::frame::{self, ALIGN, LogFrame};

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

/// Reads all frames of a segment from `from` on.
pub(crate) fn scan(bytes: &[u8], from: usize, salt: u32) -> SegmentScan {
    let mut frames = Vec::new();
    let mut at = from;
    let reason = loop {
        match frame::read(bytes, at, salt) {
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

/// Returns `true` if a frame behind `damage` was written after the bytes at `damage` had been
/// synced.
fn proves_durable(bytes: &[u8], damage: usize, salt: u32) -> bool {
    // The length at the damage cannot be trusted to find the next frame, so every aligned offset is
    // tried. The salt in the checksums keeps payload bytes from being taken for a frame here.
    (damage..bytes.len())
        .step_by(ALIGN)
        .filter_map(|at| frame::read(bytes, at, salt).ok())
        .any(|frame| frame.window as usize > damage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::frame::{FrameKind, HEADER_BYTES, write};

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
