//! Random and damaged bytes for every decoder of files.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use bolero::check;

use crate::codec;
use crate::engine::AppliedProgress;
use crate::raft_types::{Entry, LogId, Vote};
use crate::wal::frame::{self, FrameKind};
use crate::wal::scan::{SegmentTail, scan};
use crate::wal::segment::{self, SegmentHead};

const SALT: u32 = 4711;

#[test]
fn fuzz_log_frames() {
    check!().for_each(|bytes: &[u8]| {
        let scanned = scan(bytes, 0, SALT);
        assert!(scanned.end <= bytes.len());
        for found in &scanned.frames {
            assert!(found.payload.end <= bytes.len());
        }
        let _ = segment::read_preamble(bytes);
    });
}

/// One byte changes among frames that were synced one by one: the frames before it are found, none
/// behind it are, and the damage is reported unless it is in the last frame.
#[test]
fn fuzz_log_damage() {
    check!()
        .with_type::<(Vec<Vec<u8>>, usize, u8)>()
        .for_each(|(payloads, at, flip)| {
            let mut bytes = Vec::new();
            let mut starts = Vec::new();
            for (epoch, payload) in payloads.iter().enumerate() {
                let start = bytes.len();
                starts.push(start);
                let window = u32::try_from(start).unwrap();
                frame::write(
                    &mut bytes,
                    SALT,
                    FrameKind::Entry,
                    epoch as u64,
                    window,
                    payload,
                );
            }
            let written = bytes.len();
            bytes.resize(written + 64, 0);
            if *flip == 0 || written == 0 {
                return;
            }
            let at = at % written;
            bytes[at] ^= flip;
            let hit = starts.iter().rposition(|start| *start <= at).unwrap();
            let is_padding = at >= starts[hit] + frame::HEADER_BYTES + payloads[hit].len();
            let scanned = scan(&bytes, 0, SALT);
            if is_padding {
                assert_eq!(scanned.frames.len(), payloads.len());
                return;
            }
            assert_eq!(scanned.frames.len(), hit);
            let is_last = hit + 1 == payloads.len();
            assert_eq!(matches!(scanned.tail, SegmentTail::Corrupt(_)), !is_last);
        });
}

#[test]
fn fuzz_log_records() {
    check!().for_each(|bytes: &[u8]| {
        let _ = codec::decode::<Entry>(bytes);
        let _ = codec::decode::<Vote>(bytes);
        let _ = codec::decode::<Option<LogId>>(bytes);
        let _ = codec::decode::<SegmentHead>(bytes);
        let _ = codec::decode::<AppliedProgress>(bytes);
        if let Ok(entry) = codec::decode::<Entry>(bytes) {
            let again = codec::encode(&entry).unwrap();
            assert_eq!(codec::decode::<Entry>(&again).unwrap(), entry);
        }
    });
}
