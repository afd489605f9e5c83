use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use proto_release::{FileDigest, ReleaseVersion};
use serde::{Deserialize, Serialize};

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
}

impl StoredProgram {
    /// The program of a release.
    pub(crate) fn new(version: ReleaseVersion, program: FileDigest) -> Self {
        let digest = program.digest.hex();
        let begin = digest.get(..16).unwrap_or_default();
        Self {
            file: format!("{version}-{begin}"),
            version,
            program,
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
