//! Reads and verifies a backup.

use std::fmt;
use std::io::{BufReader, Read};

use age::DecryptError;
use sha2::{Digest, Sha256};

use crate::error::BackupError;
use crate::head::{Encryption, Head};
use crate::keys::Identities;
use crate::{KEY_BYTES_MAX, VALUE_BYTES_MAX, tag};

/// Longest part of a record other than a row, bytes. A longer one is refused as damaged.
const SMALL_BYTES_MAX: usize = 8 << 10;

/// A record of a backup.
#[derive(Clone, PartialEq, Eq)]
pub enum Item {
    /// The key that unseals the private keys of the state.
    DataKey(Vec<u8>),
    /// A row of the state, as the store encodes it.
    Row {
        /// Kind and key of the object.
        key: Vec<u8>,
        /// Its encoding.
        value: Vec<u8>,
    },
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataKey(_) => f.write_str("DataKey(<redacted>)"),
            Self::Row { key, value } => f
                .debug_struct("Row")
                .field("key", &String::from_utf8_lossy(key))
                .field("bytes", &value.len())
                .finish(),
        }
    }
}

/// Reads one backup. The caller must discard all records unless [`item`](Self::item) returned `None`
/// at the end: only then the checksum is verified.
pub struct Reader<'a> {
    head: Head,
    body: BufReader<zstd::Decoder<'static, BufReader<Box<dyn Read + 'a>>>>,
    hash: Sha256,
    rows: u64,
    is_over: bool,
}

impl<'a> Reader<'a> {
    /// Opens a backup. `keys` are needed only if it is encrypted.
    ///
    /// # Errors
    /// The input is not a backup, has another format, or none of the keys opens it.
    pub fn open(mut input: impl Read + 'a, keys: Option<&Identities>) -> Result<Self, BackupError> {
        let line = Head::read_line(&mut input)?;
        let head = Head::parse(&line)?;
        let body: Box<dyn Read + 'a> = match head.encryption {
            Encryption::None => Box::new(input),
            Encryption::Age => {
                let keys = keys.ok_or(BackupError::NeedsKey)?;
                let keys = keys.0.iter().map(|key| key as &dyn age::Identity);
                let decryptor = age::Decryptor::new(input).map_err(undecryptable)?;
                Box::new(decryptor.decrypt(keys).map_err(undecryptable)?)
            }
        };
        let zstd = zstd::Decoder::new(body).map_err(|e| BackupError::reading(e, 0))?;
        let mut reader = Self {
            head,
            // One frame: zstd would pass over further empty or skippable frames in silence.
            body: BufReader::new(zstd.single_frame()),
            hash: Sha256::new(),
            rows: 0,
            is_over: false,
        };
        if reader.take_tag()? != tag::HEAD {
            return Err(BackupError::damaged("it does not begin with its head"));
        }
        // Byte for byte: the checksum covers the inner header only, and a parser would ignore fields
        // that were added to the outer one.
        if reader.take_part(SMALL_BYTES_MAX)? != line {
            let reason = "what it says of itself outside is not what it says inside";
            return Err(BackupError::damaged(reason));
        }
        Ok(reader)
    }

    /// The header.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Reads the next record. `None` means that the backup is complete and its checksum matches.
    ///
    /// # Errors
    /// The backup is truncated or damaged. The records read so far must be discarded.
    pub fn item(&mut self) -> Result<Option<Item>, BackupError> {
        if self.is_over {
            return Ok(None);
        }
        // The checksum covers everything before the last record. Its tag is read next, and only then
        // it is known whether this is the last one.
        let before = self.hash.clone();
        match self.take_tag()? {
            tag::DATA_KEY => Ok(Some(Item::DataKey(self.take_part(SMALL_BYTES_MAX)?))),
            tag::ROW => {
                let key = self.take_part(KEY_BYTES_MAX)?;
                let value = self.take_part(VALUE_BYTES_MAX)?;
                self.rows += 1;
                Ok(Some(Item::Row { key, value }))
            }
            tag::END => {
                let rows = self.take_part(SMALL_BYTES_MAX)?;
                let hash = self.take_part(SMALL_BYTES_MAX)?;
                self.end(&rows, &hash, before)?;
                Ok(None)
            }
            other => Err(BackupError::damaged(format!(
                "it has a record of the unknown type {other}"
            ))),
        }
    }

    /// Checks the last record: count and checksum match, and no bytes follow.
    fn end(&mut self, rows: &[u8], hash: &[u8], before: Sha256) -> Result<(), BackupError> {
        if rows != self.rows.to_be_bytes() {
            return Err(BackupError::damaged("objects are missing"));
        }
        if hash != before.finalize().as_slice() {
            return Err(BackupError::damaged("its checksum does not match"));
        }
        let mut more = [0];
        let in_frame = self.body.read(&mut more);
        let in_frame = in_frame.map_err(|e| BackupError::reading(e, self.rows))?;
        let behind_frame = self.body.get_mut().get_mut().read(&mut more);
        let behind_frame = behind_frame.map_err(|e| BackupError::reading(e, self.rows))?;
        if in_frame + behind_frame != 0 {
            return Err(BackupError::damaged("something follows its end"));
        }
        self.is_over = true;
        Ok(())
    }

    fn take_tag(&mut self) -> Result<u8, BackupError> {
        let mut tag = [0];
        self.take(&mut tag)?;
        Ok(tag[0])
    }

    fn take_part(&mut self, max: usize) -> Result<Vec<u8>, BackupError> {
        let mut length = [0; 4];
        self.take(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > max {
            let reason = format!("it names {length} bytes where {max} may be");
            return Err(BackupError::damaged(reason));
        }
        // Bounded by `max` above: a damaged length cannot allocate 4 GiB.
        let mut part = vec![0; length];
        self.take(&mut part)?;
        Ok(part)
    }

    fn take(&mut self, buffer: &mut [u8]) -> Result<(), BackupError> {
        self.body
            .read_exact(buffer)
            .map_err(|e| BackupError::reading(e, self.rows))?;
        self.hash.update(&*buffer);
        Ok(())
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("head", &self.head)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

fn undecryptable(error: DecryptError) -> BackupError {
    match error {
        DecryptError::NoMatchingKeys => BackupError::WrongKey,
        DecryptError::Io(error) => BackupError::reading(error, 0),
        _ => BackupError::damaged("its encryption cannot be read"),
    }
}
