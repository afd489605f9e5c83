//! Writes a backup, record by record.

use std::io::{self, Write};

use age::stream::StreamWriter;
use sha2::{Digest, Sha256};

use crate::error::BackupError;
use crate::head::{Encryption, Head};
use crate::keys::Recipients;
use crate::{KEY_BYTES_MAX, VALUE_BYTES_MAX, tag};

/// Compression level of zstd, its default: a backup should be limited by the disk, not by the CPU.
const LEVEL: i32 = 3;

/// The result of writing a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Number of rows.
    pub rows: u64,
    /// Bytes before compression.
    pub bytes: u64,
}

/// Writes one backup. It is complete only after [`finish`](Self::finish).
pub struct Writer<W: Write> {
    out: zstd::Encoder<'static, Body<W>>,
    hash: Sha256,
    is_plain: bool,
    rows: u64,
    bytes: u64,
}

enum Body<W: Write> {
    Plain(W),
    Age(StreamWriter<W>),
}

impl<W: Write> Write for Body<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(buffer),
            Self::Age(out) => out.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Age(out) => out.flush(),
        }
    }
}

impl<W: Write> Writer<W> {
    /// Begins a backup that is encrypted for `recipients`, or not at all if there are none. Sets
    /// `head.encryption` accordingly.
    ///
    /// # Errors
    /// [`BackupError::Io`] if `out` fails.
    pub fn new(mut out: W, head: Head, recipients: &Recipients) -> Result<Self, BackupError> {
        let is_plain = recipients.is_empty();
        let encryption = if is_plain {
            Encryption::None
        } else {
            Encryption::Age
        };
        let head = Head { encryption, ..head };
        head.write(&mut out)?;
        let body = if is_plain {
            Body::Plain(out)
        } else {
            let recipients = recipients
                .0
                .iter()
                .map(|recipient| recipient as &dyn age::Recipient);
            let encryptor = age::Encryptor::with_recipients(recipients)
                .map_err(|e| BackupError::writing(io::Error::other(e.to_string())))?;
            Body::Age(encryptor.wrap_output(out).map_err(BackupError::writing)?)
        };
        let mut zstd = zstd::Encoder::new(body, LEVEL).map_err(BackupError::writing)?;
        zstd.include_checksum(true).map_err(BackupError::writing)?;
        let mut writer = Self {
            out: zstd,
            hash: Sha256::new(),
            is_plain,
            rows: 0,
            bytes: 0,
        };
        writer.record(tag::HEAD, &[&head.encode()?])?;
        Ok(writer)
    }

    /// Adds the key that unseals the private keys of the state.
    ///
    /// # Errors
    /// [`BackupError::PlainKey`] in a plain backup.
    pub fn data_key(&mut self, key: &[u8]) -> Result<(), BackupError> {
        if self.is_plain {
            return Err(BackupError::PlainKey);
        }
        self.record(tag::DATA_KEY, &[key])
    }

    /// Adds a row of the state, as the store encodes it.
    ///
    /// # Errors
    /// [`BackupError::TooLarge`] if the row exceeds its bound, [`BackupError::Io`] if `out` fails.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), BackupError> {
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            let bytes = key.len() + value.len();
            return Err(BackupError::TooLarge { bytes });
        }
        self.rows += 1;
        self.record(tag::ROW, &[key, value])
    }

    /// Writes the last record and flushes `out`. Syncing it is up to the caller.
    ///
    /// # Errors
    /// [`BackupError::Io`] if `out` fails.
    pub fn finish(mut self) -> Result<(W, Summary), BackupError> {
        let hash = self.hash.clone().finalize();
        let rows = self.rows;
        self.record(tag::END, &[&rows.to_be_bytes(), &hash])?;
        let bytes = self.bytes;
        let body = self.out.finish().map_err(BackupError::writing)?;
        let mut out = match body {
            Body::Plain(out) => out,
            // age marks the last chunk when it is finished. A file without that mark is refused as
            // truncated.
            Body::Age(out) => out.finish().map_err(BackupError::writing)?,
        };
        out.flush().map_err(BackupError::writing)?;
        Ok((out, Summary { rows, bytes }))
    }

    /// Writes a record: the tag, then each part with its length (4 bytes, big-endian) before it.
    fn record(&mut self, tag: u8, parts: &[&[u8]]) -> Result<(), BackupError> {
        self.put(&[tag])?;
        for part in parts {
            let length = u32::try_from(part.len());
            let length = length.map_err(|_| BackupError::TooLarge { bytes: part.len() })?;
            self.put(&length.to_be_bytes())?;
            self.put(part)?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.hash.update(bytes);
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.out.write_all(bytes).map_err(BackupError::writing)
    }
}

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
