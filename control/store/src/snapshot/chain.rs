//! The records of the received pieces, chained by checksums.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crc32fast::Hasher;

use crate::disk::DiskFile;

/// Length of a record, bytes: number of the file (4), its bytes so far (8), their checksum (4) and
/// the checksum of the chain up to and with this record (4).
const RECORD_BYTES: usize = 20;

/// A file of the snapshot is received up to `end`, and its bytes up to there have the checksum
/// `crc`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceRecord {
    /// Position of the file in the manifest.
    pub(super) file: usize,
    pub(super) end: u64,
    pub(super) crc: u32,
}

/// The file of records. Each record has a checksum over itself and all records before it.
#[derive(Debug)]
pub(super) struct RecordChain {
    file: Arc<dyn DiskFile>,
    /// Offset of the next record.
    end: u64,
    /// Checksum of the last record.
    sum: [u8; 4],
}

/// The records of each file, ascending by their end.
pub(super) type FileRecords = BTreeMap<usize, Vec<PieceRecord>>;

impl RecordChain {
    /// Begins an empty chain in an empty file.
    pub(super) fn begin(file: Arc<dyn DiskFile>) -> Self {
        let (end, sum) = (0, [0; 4]);
        Self { file, end, sum }
    }

    /// Reads the records up to the first torn one, over which the next record is written.
    pub(super) fn resume(file: Arc<dyn DiskFile>) -> io::Result<(Self, FileRecords)> {
        let mut bytes = vec![0; usize::try_from(file.bytes()?).map_err(io::Error::other)?];
        file.read_at(&mut bytes, 0)?;
        let mut chain = Self::begin(file);
        let mut records = FileRecords::new();
        // Records are not synced, so a power failure may leave a hole. New records overwrite the
        // file from the hole on, one by one; the sum over all records before tells the stale ones
        // behind them from the new ones.
        for bytes in bytes.chunks_exact(RECORD_BYTES) {
            let Some(record) = chain.accept(bytes) else {
                break;
            };
            let of_file = records.entry(record.file).or_default();
            // A file that was damaged is received again from its beginning. Its earlier records
            // from here on describe bytes that were overwritten.
            of_file.retain(|earlier| earlier.end < record.end);
            of_file.push(record);
        }
        Ok((chain, records))
    }

    /// Takes the next record of the file into the chain; `None` if it is torn.
    fn accept(&mut self, bytes: &[u8]) -> Option<PieceRecord> {
        let (content, sum) = bytes.split_last_chunk::<4>()?;
        if chain_sum(self.sum, content) != *sum {
            return None;
        }
        let (file, rest) = content.split_first_chunk::<4>()?;
        let (end, crc) = rest.split_first_chunk::<8>()?;
        let crc: [u8; 4] = crc.try_into().ok()?;
        (self.sum, self.end) = (*sum, self.end + RECORD_BYTES as u64);
        Some(PieceRecord {
            file: usize::try_from(u32::from_le_bytes(*file)).ok()?,
            end: u64::from_le_bytes(*end),
            crc: u32::from_le_bytes(crc),
        })
    }

    /// Appends a record, without a sync.
    pub(super) fn append(&mut self, record: PieceRecord) -> io::Result<()> {
        let PieceRecord { file, end, crc } = record;
        let file = u32::try_from(file).map_err(io::Error::other)?;
        let mut bytes = file.to_le_bytes().to_vec();
        bytes.extend_from_slice(&end.to_le_bytes());
        bytes.extend_from_slice(&crc.to_le_bytes());
        let sum = chain_sum(self.sum, &bytes);
        bytes.extend_from_slice(&sum);
        self.file.write_at(&bytes, self.end)?;
        // Only after the write: a failed one is overwritten by the next record.
        (self.sum, self.end) = (sum, self.end + RECORD_BYTES as u64);
        Ok(())
    }
}

/// Returns the checksum of a chain whose last checksum is `before`, with one more record.
fn chain_sum(before: [u8; 4], record: &[u8]) -> [u8; 4] {
    let mut hasher = Hasher::new();
    hasher.update(&before);
    hasher.update(record);
    hasher.finalize().to_le_bytes()
}
