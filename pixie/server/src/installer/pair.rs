//! A pair of kernel and image, and the record of it on disk.

use pixie_boot::InstallerUrls;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Version of the record.
pub(super) const VERSION: u32 = 1;

/// Length of a key before hex encoding, bytes of the digest.
const KEY_LEN: usize = 16;

/// One of the two files of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairFile {
    Kernel,
    Image,
}

impl PairFile {
    /// Name on disk, in URLs and in errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Image => "image",
        }
    }
}

/// The record of a complete pair of kernel and image. It contains no URL, which may have passwords.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(super) version: u32,
    /// SHA-256 of both URLs, hex.
    pub(super) urls: String,
    /// Name of its directory: a digest over URLs and content.
    pub(crate) key: String,
    /// Time of the download, milliseconds since the epoch.
    pub(crate) fetched_ms: u64,
    pub(crate) kernel: FetchedFile,
    pub(crate) image: FetchedFile,
}

/// A fetched file and the validators of its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedFile {
    /// Length, bytes.
    pub(crate) len: u64,
    /// Digest of the content, hex.
    pub(crate) sha256: String,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

impl Pair {
    pub(crate) fn new(
        urls: &InstallerUrls,
        kernel: FetchedFile,
        image: FetchedFile,
        fetched_ms: u64,
    ) -> Self {
        let urls = digest(&[&urls.kernel, &urls.image]);
        // The key covers URLs and content: a changed file gets new paths, so that a machine that already
        // has the old script cannot load a mix of both.
        let mut key = digest(&[&urls, &kernel.sha256, &image.sha256]);
        key.truncate(2 * KEY_LEN);
        Self {
            version: VERSION,
            urls,
            key,
            fetched_ms,
            kernel,
            image,
        }
    }

    pub(crate) fn file(&self, file: PairFile) -> &FetchedFile {
        match file {
            PairFile::Kernel => &self.kernel,
            PairFile::Image => &self.image,
        }
    }
}

/// SHA-256 over texts, hex. Each is preceded by its length, so that `ab`, `c` and `a`, `bc` differ.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}
