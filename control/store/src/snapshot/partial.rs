//! A partly received snapshot on disk, which a later attempt resumes.
//!
//! `HEADER` is the manifest of the snapshot, `copy/` holds the files, and `CHAIN` has a record for
//! each piece: the file, its bytes so far and their checksum. A restart trusts none of the bytes:
//! each file counts up to the last record whose checksum its bytes have. So pieces and records need
//! no sync.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32fast::Hasher;

use super::chain::{PieceRecord, RecordChain};
use super::file::{PIECE_BYTES, SnapshotManifest, measure, part_bytes, with_path};
use crate::codec;
use crate::disk::{DiskFile, StoreDisk};

/// File with the manifest.
const HEADER: &str = "HEADER";
/// File with the records of the pieces.
const CHAIN: &str = "CHAIN";
/// Directory of the received files; installation moves it away.
pub(crate) const COPY: &str = "copy";

/// A piece could not be added, or the received snapshot is not complete.
#[derive(Debug)]
pub(crate) enum PartialError {
    /// The received bytes are wrong or could not be written. The next attempt resumes with what the
    /// disk holds and the checksums confirm.
    Piece(io::Error),
    /// A sync failed. The pages in memory may differ from the disk now, and a check would read the
    /// pages: the snapshot must be dropped.
    Disk(io::Error),
}

/// The received beginning of a file.
#[derive(Clone, Debug, Default)]
struct ReceivedPrefix {
    bytes: u64,
    /// Checksum state over these bytes.
    hasher: Hasher,
}

/// A snapshot that is being received.
#[derive(Debug)]
pub(crate) struct PartialSnapshot {
    disk: Arc<dyn StoreDisk>,
    dir: PathBuf,
    manifest: SnapshotManifest,
    /// The received beginning of each file of the manifest.
    prefixes: Vec<ReceivedPrefix>,
    chain: RecordChain,
    /// Position and handle of the file that the last piece went to.
    open: Option<(usize, Arc<dyn DiskFile>)>,
}

impl PartialSnapshot {
    /// Begins a snapshot in `dir`, which must not exist.
    pub(crate) fn begin(
        disk: Arc<dyn StoreDisk>,
        dir: &Path,
        manifest: SnapshotManifest,
    ) -> io::Result<Self> {
        disk.create_dir(&dir.join(COPY).join("state"))
            .map_err(|e| with_path(dir, e))?;
        let path = dir.join(HEADER);
        let write = || {
            let file = disk.create(&path)?;
            file.write_at(&codec::encode_summed(&manifest)?, 0)?;
            file.sync()
        };
        write().map_err(|e| with_path(&path, e))?;
        // The header and the names are synced, the records are not: each record is confirmed by its
        // checksum when the snapshot is resumed.
        let chain = RecordChain::begin(disk.create(&dir.join(CHAIN))?);
        disk.sync_dir(dir).map_err(|e| with_path(dir, e))?;
        Ok(Self {
            prefixes: vec![ReceivedPrefix::default(); manifest.files.len()],
            dir: dir.to_owned(),
            open: None,
            disk,
            manifest,
            chain,
        })
    }

    /// Resumes the snapshot that an earlier attempt left in `dir`, as far as the checksums confirm
    /// its bytes. Reads all of it.
    pub(crate) fn resume(disk: Arc<dyn StoreDisk>, dir: &Path) -> io::Result<Self> {
        let manifest = read_header(&*disk, dir)?;
        let file = disk.open(&dir.join(CHAIN))?;
        let (chain, mut records) = RecordChain::resume(file)?;
        let mut prefixes = Vec::with_capacity(manifest.files.len());
        for (number, expected) in manifest.files.iter().enumerate() {
            // A file without a record was not begun, or its records are lost.
            let records = records.remove(&number).unwrap_or_default();
            let path = dir.join(COPY).join(&expected.path);
            let prefix = match records.is_empty() {
                true => ReceivedPrefix::default(),
                false => {
                    confirmed_prefix(&*disk, &path, &records).map_err(|e| with_path(&path, e))?
                }
            };
            // The file as a whole must match the manifest; a complete one that does not is received
            // again.
            let is_other = prefix.bytes > expected.bytes
                || (prefix.bytes == expected.bytes
                    && prefix.hasher.clone().finalize() != expected.crc);
            prefixes.push(if is_other {
                ReceivedPrefix::default()
            } else {
                prefix
            });
        }
        Ok(Self {
            dir: dir.to_owned(),
            open: None,
            disk,
            manifest,
            prefixes,
            chain,
        })
    }

    pub(crate) fn manifest(&self) -> &SnapshotManifest {
        &self.manifest
    }

    /// Returns `true` if it is still on disk: the applier removes it when the node has applied its
    /// entries without it.
    pub(crate) fn exists(&self) -> bool {
        self.disk.exists(&self.dir.join(HEADER))
    }

    /// Returns the received bytes of each file of the manifest.
    pub(crate) fn received_bytes(&self) -> Vec<u64> {
        self.prefixes.iter().map(|prefix| prefix.bytes).collect()
    }

    /// Adds the next piece of file `number`.
    pub(crate) fn append(
        &mut self,
        number: usize,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), PartialError> {
        let (Some(expected), Some(prefix)) =
            (self.manifest.files.get(number), self.prefixes.get(number))
        else {
            return Err(PartialError::Piece(invalid_data("an unknown file")));
        };
        let end = offset.saturating_add(bytes.len() as u64);
        if bytes.is_empty() || prefix.bytes != offset || end > expected.bytes {
            return Err(PartialError::Piece(invalid_data("a piece out of order")));
        }
        let path = self.dir.join(COPY).join(&expected.path);
        let is_complete = end == expected.bytes;
        let held = self.open.take().filter(|(held, _)| *held == number);
        let write = || {
            let file = match held {
                Some((_, file)) => file,
                None if offset == 0 => self.disk.create(&path)?,
                None => self.disk.open(&path)?,
            };
            file.write_at(bytes, offset).map(|()| file)
        };
        let file = write().map_err(|e| PartialError::Piece(with_path(&path, e)))?;
        // Here already: at the end alone, the sync of the whole snapshot could take longer than the
        // leader waits for the answer.
        if is_complete {
            file.sync()
                .map_err(|e| PartialError::Disk(with_path(&path, e)))?;
        }
        self.open = Some((number, file));
        let prefix = &mut self.prefixes[number];
        prefix.hasher.update(bytes);
        prefix.bytes = end;
        let record = PieceRecord {
            file: number,
            end,
            crc: prefix.hasher.clone().finalize(),
        };
        self.chain.append(record).map_err(PartialError::Piece)
    }

    /// Verifies every file against the manifest and makes all of it durable.
    pub(crate) fn verify(&mut self) -> Result<(), PartialError> {
        self.open = None;
        let copy = self.dir.join(COPY);
        for (number, expected) in self.manifest.files.iter().enumerate() {
            let path = copy.join(&expected.path);
            // An empty file has no piece that would have created it.
            let open = || match expected.bytes {
                0 => self.disk.create(&path),
                _ => self.disk.open(&path),
            };
            let found = open().and_then(|file| Ok((measure(&*file)?, file)));
            // Read again, although each piece was counted into a checksum: that checksum covers the
            // bytes that were received, not the bytes in the file.
            let wrong = match found {
                Ok((found, file)) if found == (expected.bytes, expected.crc) => {
                    file.sync()
                        .map_err(|e| PartialError::Disk(with_path(&path, e)))?;
                    continue;
                }
                Ok(_) => invalid_data(&format!("{}, but other bytes arrived", expected.path)),
                Err(error) => with_path(&path, error),
            };
            // The next attempt receives this file from its beginning.
            self.prefixes[number] = ReceivedPrefix::default();
            return Err(PartialError::Piece(wrong));
        }
        // The names as well, before the rename of the copy: a durable snapshot must not lack files.
        let synced = self.disk.sync_dir(&copy.join("state"));
        let synced = synced.and_then(|()| self.disk.sync_dir(&copy));
        synced.map_err(|e| PartialError::Disk(with_path(&copy, e)))
    }
}

/// Reads the manifest of the partly received snapshot in `dir`.
pub(crate) fn read_header(disk: &dyn StoreDisk, dir: &Path) -> io::Result<SnapshotManifest> {
    let path = dir.join(HEADER);
    let bytes = disk.read(&path).map_err(|e| with_path(&path, e))?;
    Ok(codec::decode_summed(&bytes)?)
}

/// Returns the longest beginning of a file that has the checksum of a record.
fn confirmed_prefix(
    disk: &dyn StoreDisk,
    path: &Path,
    records: &[PieceRecord],
) -> io::Result<ReceivedPrefix> {
    let mut confirmed = ReceivedPrefix::default();
    if !disk.exists(path) {
        return Ok(confirmed);
    }
    let file = disk.open(path)?;
    let total = file.bytes()?;
    let mut buffer = vec![0; PIECE_BYTES];
    let mut read = ReceivedPrefix::default();
    // The records may be ahead of the file, whose last pieces a power failure took.
    for record in records.iter().filter(|record| record.end <= total) {
        while read.bytes < record.end {
            let part = &mut buffer[..part_bytes(record.end - read.bytes)];
            file.read_at(part, read.bytes)?;
            read.hasher.update(part);
            read.bytes += part.len() as u64;
        }
        if read.hasher.clone().finalize() != record.crc {
            break;
        }
        confirmed = read.clone();
    }
    Ok(confirmed)
}

/// The leader broke the protocol: it sent `what`.
pub(crate) fn invalid_data(what: &str) -> io::Error {
    let message = format!("the leader sent {what}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}
