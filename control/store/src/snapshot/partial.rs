//! A snapshot that is on its way here, as it lies on disk.
//!
//! `HEADER` says which snapshot it is and which files it has, `copy/` holds the files, and
//! `CHAIN` has a record for each piece: which file has come how far, and the checksum of that file
//! up to there. Nothing of it is believed after a restart: the bytes of each file count as far as
//! they have the checksum that a record names. So nothing but the end of each file needs a sync.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use super::file::{PIECE_BYTES, SnapshotFile, at, measure};
use crate::codec;
use crate::disk::{DiskFile, StoreDisk};

const HEADER: &str = "HEADER";
const CHAIN: &str = "CHAIN";
/// The snapshot itself.
pub(crate) const COPY: &str = "copy";
/// Number of the file, its bytes, their checksum, and the checksum of the chain up to here.
const RECORD_BYTES: usize = 20;

/// Which snapshot it is. Equal headers are equal snapshots: the checksums are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartialHeader {
    /// By term and index.
    pub(crate) name: String,
    pub(crate) files: Vec<SnapshotFile>,
}

/// Why a partial snapshot does not grow or is not whole.
#[derive(Debug)]
pub(crate) enum PartialError {
    /// What was received is wrong, or could not be written. What is there stays, as far as it can
    /// be trusted.
    Piece(io::Error),
    /// A sync failed, after which nobody knows what is on disk: none of it may be used.
    Disk(io::Error),
}

/// The beginning of a file, as it was received.
#[derive(Clone, Debug, Default)]
struct ReceivedPrefix {
    bytes: u64,
    hasher: Hasher,
}

/// A snapshot that is not complete.
#[derive(Debug)]
pub(crate) struct PartialSnapshot {
    disk: Arc<dyn StoreDisk>,
    dir: PathBuf,
    header: PartialHeader,
    have: Vec<ReceivedPrefix>,
    chain: RecordChain,
    /// The file that was written last.
    open: Option<(usize, Arc<dyn DiskFile>)>,
}

impl PartialSnapshot {
    /// Begins one in `dir`, which must not exist.
    pub(crate) fn begin(
        disk: Arc<dyn StoreDisk>,
        dir: &Path,
        header: PartialHeader,
    ) -> io::Result<Self> {
        disk.create_dir(&dir.join(COPY).join("state"))
            .map_err(|e| at(dir, e))?;
        let path = dir.join(HEADER);
        let write = || {
            let file = disk.create(&path)?;
            file.write_at(&codec::encode_summed(&header)?, 0)?;
            file.sync()
        };
        write().map_err(|e| at(&path, e))?;
        let chain = RecordChain::begin(disk.create(&dir.join(CHAIN))?);
        disk.sync_dir(dir).map_err(|e| at(dir, e))?;
        Ok(Self {
            have: vec![ReceivedPrefix::default(); header.files.len()],
            dir: dir.to_owned(),
            open: None,
            disk,
            header,
            chain,
        })
    }

    /// Takes up what an earlier run left in `dir`, as far as its bytes can be trusted. Reads all
    /// of it.
    pub(crate) fn resume(disk: Arc<dyn StoreDisk>, dir: &Path) -> io::Result<Self> {
        let header = read_header(&*disk, dir)?;
        let file = disk.open(&dir.join(CHAIN))?;
        let (chain, mut records) = RecordChain::resume(file)?;
        let mut have = Vec::with_capacity(header.files.len());
        for (number, listed) in header.files.iter().enumerate() {
            let records = records.remove(&number).unwrap_or_default();
            let path = dir.join(COPY).join(&listed.path);
            let prefix = match records.is_empty() {
                true => ReceivedPrefix::default(),
                false => trusted(&*disk, &path, &records).map_err(|e| at(&path, e))?,
            };
            let is_other = prefix.bytes > listed.bytes
                || (prefix.bytes == listed.bytes && prefix.hasher.clone().finalize() != listed.crc);
            have.push(if is_other {
                ReceivedPrefix::default()
            } else {
                prefix
            });
        }
        Ok(Self {
            dir: dir.to_owned(),
            open: None,
            disk,
            header,
            have,
            chain,
        })
    }

    pub(crate) fn header(&self) -> &PartialHeader {
        &self.header
    }

    /// Whether it still lies there: somebody may have found it to be of no more use.
    pub(crate) fn exists(&self) -> bool {
        self.disk.exists(&self.dir.join(HEADER))
    }

    /// Bytes of each file that are here.
    pub(crate) fn have(&self) -> Vec<u64> {
        self.have.iter().map(|prefix| prefix.bytes).collect()
    }

    /// Adds the next piece of a file.
    pub(crate) fn append(
        &mut self,
        number: usize,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), PartialError> {
        let (Some(listed), Some(have)) = (self.header.files.get(number), self.have.get(number))
        else {
            return Err(PartialError::Piece(bad("an unknown file")));
        };
        let end = offset.saturating_add(bytes.len() as u64);
        if bytes.is_empty() || have.bytes != offset || end > listed.bytes {
            return Err(PartialError::Piece(bad("a piece out of order")));
        }
        let path = self.dir.join(COPY).join(&listed.path);
        let is_whole = end == listed.bytes;
        let held = self.open.take().filter(|(held, _)| *held == number);
        let write = || {
            let file = match held {
                Some((_, file)) => file,
                None if offset == 0 => self.disk.create(&path)?,
                None => self.disk.open(&path)?,
            };
            file.write_at(bytes, offset).map(|()| file)
        };
        let file = write().map_err(|e| PartialError::Piece(at(&path, e)))?;
        // Else the end of the transfer would have to wait for everything.
        if is_whole {
            file.sync().map_err(|e| PartialError::Disk(at(&path, e)))?;
        }
        self.open = Some((number, file));
        let have = &mut self.have[number];
        have.hasher.update(bytes);
        have.bytes = end;
        let crc = have.hasher.clone().finalize();
        self.chain
            .add(number, end, crc)
            .map_err(PartialError::Piece)
    }

    /// Checks every file against its checksum and makes all of it durable.
    pub(crate) fn verify(&mut self) -> Result<(), PartialError> {
        self.open = None;
        let copy = self.dir.join(COPY);
        for (number, listed) in self.header.files.iter().enumerate() {
            let path = copy.join(&listed.path);
            let open = || match listed.bytes {
                0 => self.disk.create(&path),
                _ => self.disk.open(&path),
            };
            let found = open().and_then(|file| Ok((measure(&*file)?, file)));
            let wrong = match found {
                Ok((found, file)) if found == (listed.bytes, listed.crc) => {
                    file.sync().map_err(|e| PartialError::Disk(at(&path, e)))?;
                    continue;
                }
                Ok(_) => bad(&format!("{}, but other bytes arrived", listed.path)),
                Err(error) => at(&path, error),
            };
            self.have[number] = ReceivedPrefix::default();
            return Err(PartialError::Piece(wrong));
        }
        let synced = self.disk.sync_dir(&copy.join("state"));
        let synced = synced.and_then(|()| self.disk.sync_dir(&copy));
        synced.map_err(|e| PartialError::Disk(at(&copy, e)))
    }
}

/// Which snapshot lies in `dir`.
pub(crate) fn read_header(disk: &dyn StoreDisk, dir: &Path) -> io::Result<PartialHeader> {
    let path = dir.join(HEADER);
    let bytes = disk.read(&path).map_err(|e| at(&path, e))?;
    Ok(codec::decode_summed(&bytes)?)
}

/// The longest beginning of a file that has the checksum of a record.
fn trusted(
    disk: &dyn StoreDisk,
    path: &Path,
    records: &[(u64, u32)],
) -> io::Result<ReceivedPrefix> {
    let mut trusted = ReceivedPrefix::default();
    if !disk.exists(path) {
        return Ok(trusted);
    }
    let file = disk.open(path)?;
    let total = file.bytes()?;
    let mut buffer = vec![0; PIECE_BYTES];
    let mut read = ReceivedPrefix::default();
    for (end, crc) in records.iter().filter(|(end, _)| *end <= total) {
        while read.bytes < *end {
            let left = usize::try_from(end - read.bytes).unwrap_or(usize::MAX);
            let part = &mut buffer[..left.min(PIECE_BYTES)];
            file.read_at(part, read.bytes)?;
            read.hasher.update(part);
            read.bytes += part.len() as u64;
        }
        if read.hasher.clone().finalize() != *crc {
            break;
        }
        trusted = read.clone();
    }
    Ok(trusted)
}

/// Records, each with a checksum over itself and all before it.
#[derive(Debug)]
struct RecordChain {
    file: Arc<dyn DiskFile>,
    end: u64,
    sum: [u8; 4],
}

/// For each file, bytes and their checksum, ascending.
type Records = BTreeMap<usize, Vec<(u64, u32)>>;

impl RecordChain {
    fn begin(file: Arc<dyn DiskFile>) -> Self {
        let (end, sum) = (0, [0; 4]);
        Self { file, end, sum }
    }

    /// The records up to the first one that is torn.
    fn resume(file: Arc<dyn DiskFile>) -> io::Result<(Self, Records)> {
        let mut bytes = vec![0; usize::try_from(file.bytes()?).map_err(io::Error::other)?];
        file.read_at(&mut bytes, 0)?;
        let mut chain = Self::begin(file);
        let mut records = Records::new();
        for record in bytes.chunks_exact(RECORD_BYTES) {
            let Some((number, end, crc)) = chain.accept(record) else {
                break;
            };
            let of_file = records.entry(number).or_default();
            // A file that was damaged began anew.
            of_file.retain(|(earlier, _)| *earlier < end);
            of_file.push((end, crc));
        }
        Ok((chain, records))
    }

    fn accept(&mut self, record: &[u8]) -> Option<(usize, u64, u32)> {
        let (content, sum) = record.split_last_chunk::<4>()?;
        if link(self.sum, content) != *sum {
            return None;
        }
        let (number, rest) = content.split_first_chunk::<4>()?;
        let (bytes, crc) = rest.split_first_chunk::<8>()?;
        let crc: [u8; 4] = crc.try_into().ok()?;
        (self.sum, self.end) = (*sum, self.end + RECORD_BYTES as u64);
        let number = usize::try_from(u32::from_le_bytes(*number)).ok()?;
        Some((number, u64::from_le_bytes(*bytes), u32::from_le_bytes(crc)))
    }

    fn add(&mut self, number: usize, bytes: u64, crc: u32) -> io::Result<()> {
        let number = u32::try_from(number).map_err(io::Error::other)?;
        let mut record = number.to_le_bytes().to_vec();
        record.extend_from_slice(&bytes.to_le_bytes());
        record.extend_from_slice(&crc.to_le_bytes());
        let sum = link(self.sum, &record);
        record.extend_from_slice(&sum);
        self.file.write_at(&record, self.end)?;
        (self.sum, self.end) = (sum, self.end + RECORD_BYTES as u64);
        Ok(())
    }
}

/// The checksum of a chain with one more record.
fn link(before: [u8; 4], record: &[u8]) -> [u8; 4] {
    let mut hasher = Hasher::new();
    hasher.update(&before);
    hasher.update(record);
    hasher.finalize().to_le_bytes()
}

pub(crate) fn bad(what: &str) -> io::Error {
    let message = format!("the leader sent {what}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}
