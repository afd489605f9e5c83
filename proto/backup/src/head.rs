//! The header of a backup, before its body.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::error::BackupError;

/// The only format that this program writes and reads.
pub const FORMAT: u32 = 2;

/// First line of every backup.
const MAGIC: &str = "metalmesh-backup\n";
/// Longest header, bytes. A longer one is refused as damaged.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// The header of a backup. Not secret: it is readable without a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Format of the body.
    pub format: u32,
    /// Version of the program that made it.
    pub made_by: String,
    /// Time of the backup, milliseconds since the Unix epoch.
    pub made_at_ms: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the cluster. A restored cluster gets a new one.
    pub cluster_id: String,
    /// The node that made it.
    pub node: u64,
    /// Raft term at that time.
    pub term: u64,
    /// Revision of the state. The backup contains every change up to it.
    pub revision: u64,
    /// Feature level of the cluster. A program with a lower one cannot read all rows.
    pub feature_level: u32,
    /// How the body is encrypted.
    pub encryption: Encryption,
}

/// How the body of a backup is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// With age, for X25519 recipients.
    Age,
    /// Not encrypted, and without the data key.
    None,
}

impl Head {
    /// Reads the magic line and the header; the body follows.
    ///
    /// # Errors
    /// [`BackupError::Foreign`] if it is not a backup, [`BackupError::Version`] if it has another format.
    pub fn read(from: &mut impl Read) -> Result<Self, BackupError> {
        Self::parse(&Self::read_line(from)?)
    }

    /// Reads the magic line and the line of the header, without its line feed.
    pub(crate) fn read_line(from: &mut impl Read) -> Result<Vec<u8>, BackupError> {
        let mut magic = [0; MAGIC.len()];
        read_all(from, &mut magic)?;
        if magic != MAGIC.as_bytes() {
            return Err(BackupError::Foreign);
        }
        // Read byte by byte: a buffered reader would take bytes of the body with it.
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            read_all(from, &mut byte)?;
            match byte {
                [b'\n'] => break,
                _ if line.len() == HEAD_BYTES_MAX => {
                    return Err(BackupError::damaged("its head has no end"));
                }
                [other] => line.push(other),
            }
        }
        Ok(line)
    }

    /// Parses the header. The format is checked first: a header of another format may have other
    /// fields.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, BackupError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            #[serde(default)]
            made_by: String,
        }
        let bad = |_| BackupError::damaged("its head cannot be read");
        let version: Version = serde_json::from_slice(json).map_err(bad)?;
        if version.format != FORMAT {
            let Version { format, made_by } = version;
            return Err(BackupError::Version { format, made_by });
        }
        serde_json::from_slice(json).map_err(bad)
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, BackupError> {
        serde_json::to_vec(self).map_err(|e| BackupError::writing(e.into()))
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> Result<(), BackupError> {
        let line = [MAGIC.as_bytes(), &self.encode()?, b"\n"].concat();
        to.write_all(&line).map_err(BackupError::writing)
    }
}

fn read_all(from: &mut impl Read, buffer: &mut [u8]) -> Result<(), BackupError> {
    from.read_exact(buffer).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => BackupError::Foreign,
        _ => BackupError::Io {
            action: "read",
            source: error,
        },
    })
}
