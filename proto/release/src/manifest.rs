use serde::{Deserialize, Serialize};

use crate::{FileDigest, PROGRAM_BYTES_MAX, ReleaseError, ReleaseVersion};

/// Longest name of a program and of an architecture, bytes.
const NAME_LEN_MAX: usize = 64;
/// Longest validity, seconds: 400 days. A longer one would let an old release be replayed for years.
const VALIDITY_MAX_S: u64 = 400 * 24 * 3600;
/// Most versions that a downgrade may start from.
const DOWNGRADES_MAX: usize = 64;

/// The form of the program in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadEncoding {
    /// As it is.
    Plain,
    /// Compressed with zstd.
    Zstd,
}

/// The signed description of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseManifest {
    /// Name of the program.
    pub name: String,
    /// Its version.
    pub version: ReleaseVersion,
    /// Processors that it runs on, as Rust calls them: `x86_64`, `aarch64`.
    pub architecture: String,
    /// Level of the mesh protocol that it needs. Counts where the program speaks with control.
    pub mesh_level: u32,
    /// Begin of the validity, seconds since 1970.
    pub not_before_s: u64,
    /// End of the validity, seconds since 1970: a release that is replayed later is refused.
    pub expires_s: u64,
    /// Newer versions that this release may replace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_downgrade_from: Vec<ReleaseVersion>,
    /// Form of the program in the payload.
    pub encoding: PayloadEncoding,
    /// Digest of the payload.
    pub payload: FileDigest,
    /// Digest of the program.
    pub program: FileDigest,
}

impl ReleaseManifest {
    /// The manifest as it is signed.
    ///
    /// # Errors
    /// [`ReleaseError::Format`]: a field breaks a rule of the format.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, ReleaseError> {
        self.check_fields()?;
        serde_json::to_vec(self).map_err(|error| ReleaseError::Format(error.to_string()))
    }

    /// The manifest of bytes whose signature was verified.
    ///
    /// # Errors
    /// [`ReleaseError::Format`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ReleaseError> {
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| ReleaseError::Format(format!("the manifest: {error}")))?;
        manifest.check_fields()?;
        Ok(manifest)
    }

    fn check_fields(&self) -> Result<(), ReleaseError> {
        let is_in_bounds =
            |file: &FileDigest| file.is_sha256() && (1..=PROGRAM_BYTES_MAX).contains(&file.bytes);
        let problem = if !is_word(&self.name) {
            "name: it is no name of a program"
        } else if !is_word(&self.architecture) {
            "architecture: it is no name of an architecture"
        } else if self.not_before_s >= self.expires_s {
            "expires_s: it is not after not_before_s"
        } else if self.expires_s - self.not_before_s > VALIDITY_MAX_S {
            "expires_s: it is more than 400 days after not_before_s; use `--valid-for` with less"
        } else if self.allow_downgrade_from.len() > DOWNGRADES_MAX {
            "allow_downgrade_from: there are more than 64 versions"
        } else if !is_in_bounds(&self.program) {
            "program: it needs a SHA-256, and 1 byte to 256 MiB"
        } else if !is_in_bounds(&self.payload) {
            "payload: it needs a SHA-256, and 1 byte to 256 MiB"
        } else if self.encoding == PayloadEncoding::Plain && self.payload != self.program {
            "payload: it differs from the program, and is not compressed"
        } else {
            return Ok(());
        };
        Err(ReleaseError::Format(problem.to_owned()))
    }
}

/// `true` for small letters, digits, `-` and `_`: what a log and a terminal show as it is.
fn is_word(text: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=NAME_LEN_MAX).contains(&text.len()) && text.bytes().all(is_part)
}
