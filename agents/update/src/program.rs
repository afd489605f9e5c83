use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto_release::{FileDigest, ReleaseVersion};
use proto_types::Digest;
use serde::{Deserialize, Serialize};

use super::release_id::ReleaseId;

/// The program that the image, or an operator, has installed. Self-update never changes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledProgram {
    /// Its version.
    pub version: ReleaseVersion,
    /// Its length, bytes.
    pub bytes: u64,
    /// When it was written, seconds since 1970.
    pub modified_s: i64,
}

impl InstalledProgram {
    /// The program of a file.
    pub(crate) fn of(version: ReleaseVersion, meta: &Metadata) -> Self {
        Self {
            version,
            bytes: meta.len(),
            modified_s: meta.mtime(),
        }
    }
}

/// A program of a release, in the state directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredProgram {
    /// Version of its manifest.
    pub version: ReleaseVersion,
    /// Name of its file. See [`StoredProgram::is_safe`].
    pub file: String,
    /// Digest of its manifest.
    pub program: FileDigest,
    /// SHA-256 of the signed head of its release. `None` while it is on trial, whose head tells it, and if
    /// an earlier program wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_digest: Option<Digest>,
    /// The signed head of its release, base64, by which its key is checked at each start. Empty while it is
    /// on trial, and if an earlier program wrote the record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
}

impl StoredProgram {
    /// The program of a release.
    #[must_use]
    pub fn new(version: ReleaseVersion, program: FileDigest) -> Self {
        let digest = program.digest.hex();
        let begin = digest.get(..16).unwrap_or_default();
        Self {
            file: format!("{version}-{begin}"),
            version,
            program,
            head_digest: None,
            head: String::new(),
        }
    }

    /// The signed head of its release. `None` if it is not known, and while it is on trial.
    #[must_use]
    pub fn signed_head(&self) -> Option<Vec<u8>> {
        decoded(&self.head)
    }

    /// Takes note of the signed head of its release.
    pub(super) fn set_head(&mut self, head: &[u8]) {
        self.head = STANDARD.encode(head);
    }

    /// Its release.
    pub(super) fn release(&self) -> ReleaseId {
        ReleaseId {
            version: self.version.clone(),
            head_digest: self.head_digest.clone(),
        }
    }

    /// `true` if its file is one of the directory of programs, and no hidden one.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        !self.file.is_empty() && !self.file.starts_with('.') && self.file.bytes().all(is_part)
    }
}

/// A new program that has not confirmed itself yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialProgram {
    /// The program.
    pub program: StoredProgram,
    /// Times that it was started.
    pub starts: u32,
    /// The signed head of its release, base64. Empty if an earlier program wrote the record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
}

impl TrialProgram {
    /// A program that was not started yet. `head` is the signed head of its release.
    pub(super) fn new(program: StoredProgram, head: &[u8]) -> Self {
        Self {
            program,
            starts: 0,
            head: STANDARD.encode(head),
        }
    }

    /// The signed head of its release. `None` if it is not known.
    #[must_use]
    pub fn signed_head(&self) -> Option<Vec<u8>> {
        decoded(&self.head)
    }

    /// Its release.
    #[must_use]
    pub fn release(&self) -> ReleaseId {
        let head = self.signed_head();
        let found = head.and_then(|head| FileDigest::of(head.as_slice()).ok());
        ReleaseId {
            version: self.program.version.clone(),
            head_digest: found.map(|found| found.digest),
        }
    }
}

/// A signed head out of the record. `None` if it is not known.
fn decoded(head: &str) -> Option<Vec<u8>> {
    // One that cannot be read is no head of a release, either.
    (!head.is_empty()).then(|| STANDARD.decode(head).unwrap_or_default())
}
