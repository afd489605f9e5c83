//! Scan of a whole segment: its readable frames, and the classification of the bytes behind them.

use super::frame::{self, ALIGN, FrameError, LogFrame};

/// The bytes that follow the last readable frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentTail {
    /// Zeros follow the last frame.
    Clean,
    /// Bytes of an interrupted write follow, which was never acknowledged.
    Torn,
    /// Damage among bytes that had been synced; the text says what is wrong.
    Corrupt(String),
    /// An intact frame that only a newer format has.
    Newer {
        /// Number of its kind.
        kind: u8,
        /// Offset of the frame.
        at: usize,
    },
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
    let error = loop {
        match frame::read(bytes, at, salt) {
            Ok(frame) => {
                at = frame.end();
                frames.push(frame);
            }
            Err(error) => break error,
        }
    };
    // A segment is zero-filled when it is made, so that zeros mean that nothing was ever written
    // there. Anything else must be classified before the caller may cut it.
    let tail = if bytes[at.min(bytes.len())..].iter().all(|byte| *byte == 0) {
        SegmentTail::Clean
    } else {
        classify(bytes, at, salt, error)
    };
    SegmentScan {
        frames,
        end: at,
        tail,
    }
}

/// Classifies the bytes from `damage` on, where `error` was found.
fn classify(bytes: &[u8], damage: usize, salt: u32, error: FrameError) -> SegmentTail {
    // The length at the damage cannot be trusted to find the next frame, so every aligned offset is
    // tried. The salt in the checksums keeps payload bytes from being taken for a frame here.
    (damage..bytes.len())
        .step_by(ALIGN)
        .find_map(|at| match frame::read(bytes, at, salt) {
            // Written after the bytes at the damage had been synced.
            Ok(frame) if frame.window as usize > damage => {
                Some(SegmentTail::Corrupt(error.to_string()))
            }
            // This build cannot judge what a newer format relies on, so that nothing may be cut.
            Err(FrameError::UnknownKind(kind)) => Some(SegmentTail::Newer { kind, at }),
            _ => None,
        })
        .unwrap_or(SegmentTail::Torn)
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
    fn an_intact_frame_of_unknown_kind_is_never_cut() {
        let (bytes, starts) = segment();
        for (damaged, unknown) in [(4, 4), (3, 3), (3, 4)] {
            let mut bytes = bytes.clone();
            bytes[starts[damaged] + HEADER_BYTES] ^= 1;
            let at = starts[unknown];
            let mut replaced = Vec::new();
            write(&mut replaced, SALT, FrameKind::Entry, 4, 0, b"new!");
            frame::set_kind(&mut replaced, SALT, 9);
            bytes[at..at + replaced.len()].copy_from_slice(&replaced);
            let found = scan(&bytes, 0, SALT);
            assert_eq!(found.frames.len(), damaged);
            assert_eq!(found.tail, SegmentTail::Newer { kind: 9, at });
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
