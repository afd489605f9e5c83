use std::io::{self, Read};

use proto_types::{Digest, DigestAlgorithm};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::ReleaseError;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Length and SHA-256 of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDigest {
    /// Length, bytes.
    pub bytes: u64,
    /// SHA-256.
    pub digest: Digest,
}

impl FileDigest {
    /// Those of a file that is read to its end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(mut file: impl Read) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let mut bytes = 0;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let length = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            context.update(piece.get(..length).unwrap_or_default());
            bytes += length as u64;
        }
        Ok(Self {
            bytes,
            digest: sha256(context),
        })
    }

    /// `true` if the digest is a SHA-256.
    pub(crate) fn is_sha256(&self) -> bool {
        self.digest.algorithm() == DigestAlgorithm::Sha256
    }
}

/// Compares bytes that arrive piece by piece with the digest that a manifest has for them.
pub struct PayloadMeter {
    expected: FileDigest,
    context: Context,
    bytes: u64,
}

impl std::fmt::Debug for PayloadMeter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = out.debug_struct("PayloadMeter");
        shown.field("expected", &self.expected);
        shown.field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl PayloadMeter {
    /// A meter that has seen nothing.
    #[must_use]
    pub fn new(expected: FileDigest) -> Self {
        Self {
            expected,
            context: Context::new(&SHA256),
            bytes: 0,
        }
    }

    /// Takes the next piece. Call it before the piece is kept.
    ///
    /// # Errors
    /// [`ReleaseError::TooLong`]: there are more bytes than the manifest says.
    pub fn update(&mut self, piece: &[u8]) -> Result<(), ReleaseError> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > self.expected.bytes {
            return Err(ReleaseError::TooLong {
                bytes: self.expected.bytes,
            });
        }
        self.context.update(piece);
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// [`ReleaseError::Truncated`] or [`ReleaseError::Digest`].
    pub fn finish(self) -> Result<(), ReleaseError> {
        if self.bytes < self.expected.bytes {
            return Err(ReleaseError::Truncated {
                bytes: self.bytes,
                expected: self.expected.bytes,
            });
        }
        if sha256(self.context).same_as(&self.expected.digest) {
            Ok(())
        } else {
            Err(ReleaseError::Digest)
        }
    }
}

fn sha256(context: Context) -> Digest {
    let mut bytes = [0; 32];
    // A SHA-256 has 32 bytes.
    bytes.copy_from_slice(context.finish().as_ref());
    Digest::sha256(bytes)
}
