//! Pairs on disk: `<key>/kernel`, `<key>/image`, `<key>/pair.json`. A pair that is being fetched
//! is in `new-<number>` until one rename makes it one; what a crash leaves there is removed at the
//! start.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use pixie_boot::InstallerUrls;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::leasefile::{read_json, write_json};

const NEW: &str = "new-";
const RECORD: &str = "pair.json";
const VERSION: u32 = 1;
/// Bytes of SHA-256 in a key.
const KEY_LEN: usize = 16;

/// One of the two files of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairFile {
    Kernel,
    Image,
}

impl PairFile {
    /// Its name on disk, in URLs and in errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Image => "image",
        }
    }
}

/// A pair of kernel and image that came whole. It holds no URL: those may have passwords.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pair {
    version: u32,
    /// SHA-256 of both URLs, hex.
    urls: String,
    /// Its directory: a digest over URLs and content.
    pub(crate) key: String,
    /// When it came, milliseconds since the epoch.
    pub(crate) fetched_ms: u64,
    pub(crate) kernel: FetchedFile,
    pub(crate) image: FetchedFile,
}

/// A file as it came, and by what its server tells one version from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedFile {
    /// Bytes.
    pub(crate) len: u64,
    /// Hex.
    pub(crate) sha256: String,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

impl Pair {
    pub(crate) fn new(
        urls: &InstallerUrls,
        (kernel, image): (FetchedFile, FetchedFile),
        fetched_ms: u64,
    ) -> Self {
        let urls = digest(&[&urls.kernel, &urls.image]);
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

/// Hex of SHA-256 over texts, each with its length, so that none runs into the next.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// The directory of all pairs. At most one is kept, and one more may be on its way.
#[derive(Debug)]
pub(crate) struct PairStore {
    dir: PathBuf,
    pairs: RwLock<Vec<Pair>>,
    /// Names of directories of pairs on their way: none is used twice, so that a download that is
    /// given up never removes the next one.
    downloads: AtomicU64,
}

impl PairStore {
    /// Reads what is there. What is not a whole pair is removed.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(dir)?;
        let mut pairs = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            match read_pair(&path) {
                Some(pair) => pairs.push(pair),
                None => remove(&path)?,
            }
        }
        Ok(Self {
            dir: dir.into(),
            pairs: RwLock::new(pairs),
            downloads: AtomicU64::new(0),
        })
    }

    /// The pair that was fetched from exactly these URLs.
    pub(crate) fn find(&self, urls: &InstallerUrls) -> Option<Pair> {
        let urls = digest(&[&urls.kernel, &urls.image]);
        let pairs = self.pairs.read();
        let of_urls = pairs.iter().filter(|pair| pair.urls == urls);
        of_urls.max_by_key(|pair| pair.fetched_ms).cloned()
    }

    /// Path of a file of a pair; `None` when there is no such pair.
    pub(crate) fn path(&self, key: &str, file: PairFile) -> Option<PathBuf> {
        let pairs = self.pairs.read();
        let pair = pairs.iter().find(|pair| pair.key == key)?;
        Some(self.dir.join(&pair.key).join(file.name()))
    }

    /// An empty directory for the next pair. Of the pairs that are there only `known` stays, or
    /// the newest without it, so that there are never more than two on disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn begin(&self, known: Option<&Pair>) -> io::Result<Staging> {
        let kept = {
            let pairs = self.pairs.read();
            let newest = pairs.iter().max_by_key(|pair| pair.fetched_ms);
            known.or(newest).map(|pair| pair.key.clone())
        };
        self.keep(kept.as_deref())?;
        let number = self.downloads.fetch_add(1, Ordering::Relaxed);
        let staging = Staging(self.dir.join(format!("{NEW}{number}")));
        fs::DirBuilder::new().mode(0o700).create(&staging.0)?;
        Ok(staging)
    }

    /// Takes a file that has not changed from the pair that has it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn link(&self, pair: &Pair, file: PairFile, staging: &Staging) -> io::Result<()> {
        let from = self.dir.join(&pair.key).join(file.name());
        fs::hard_link(from, staging.path(file))
    }

    /// Makes what was fetched the only pair. Its files are on disk and synced already.
    ///
    /// # Errors
    /// When the disk refuses; then the pairs of before are still there.
    pub(crate) fn install(&self, staging: Staging, pair: Pair) -> io::Result<()> {
        let path = self.dir.join(&pair.key);
        if path.exists() {
            // The same content once more: only what its server calls it has changed.
            write_json(&path.join(RECORD), &pair)?;
        } else {
            write_json(&staging.0.join(RECORD), &pair)?;
            fs::rename(&staging.0, &path)?;
            File::open(&self.dir)?.sync_all()?;
        }
        let key = pair.key.clone();
        {
            let mut pairs = self.pairs.write();
            pairs.retain(|old| old.key != key);
            pairs.push(pair);
        }
        self.keep(Some(&key))
    }

    /// Removes all pairs but the one with this key.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn keep(&self, key: Option<&str>) -> io::Result<()> {
        let gone: Vec<Pair> = {
            let mut pairs = self.pairs.write();
            pairs
                .extract_if(.., |pair| key != Some(pair.key.as_str()))
                .collect()
        };
        for pair in gone {
            remove(&self.dir.join(pair.key))?;
        }
        Ok(())
    }
}

/// The directory of a pair on its way; removed with what is in it unless it became a pair.
#[derive(Debug)]
pub(crate) struct Staging(PathBuf);

impl Staging {
    pub(crate) fn path(&self, file: PairFile) -> PathBuf {
        self.0.join(file.name())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "not removed");
        }
    }
}

/// Reads a pair; `None` for what is none, or not whole.
fn read_pair(path: &Path) -> Option<Pair> {
    let pair: Pair = read_json(&path.join(RECORD)).ok()??;
    let is_whole = |file: PairFile| {
        let metadata = fs::metadata(path.join(file.name()));
        metadata.is_ok_and(|metadata| metadata.len() == pair.file(file).len)
    };
    let is_pair = pair.version == VERSION
        && path
            .file_name()
            .is_some_and(|name| name == pair.key.as_str())
        && is_whole(PairFile::Kernel)
        && is_whole(PairFile::Image);
    is_pair.then_some(pair)
}

/// Removes a file or a directory; one that is missing is fine.
fn remove(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(name: &str) -> InstallerUrls {
        InstallerUrls {
            kernel: format!("http://u:secret@h/{name}/kernel"),
            image: format!("http://h/{name}/image"),
        }
    }

    fn fetched(bytes: &[u8]) -> FetchedFile {
        FetchedFile {
            len: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(bytes)),
            etag: None,
            last_modified: None,
        }
    }

    /// Puts a pair as a download does.
    fn put(store: &PairStore, name: &str, kernel: &[u8], fetched_ms: u64) -> Pair {
        let staging = store.begin(None).unwrap();
        fs::write(staging.path(PairFile::Kernel), kernel).unwrap();
        fs::write(staging.path(PairFile::Image), b"image").unwrap();
        let files = (fetched(kernel), fetched(b"image"));
        let pair = Pair::new(&urls(name), files, fetched_ms);
        store.install(staging, pair.clone()).unwrap();
        pair
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_pair_is_there_after_a_restart_and_only_for_its_urls() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairStore::open(dir.path()).unwrap();
        assert_eq!(store.find(&urls("a")), None);
        let pair = put(&store, "a", b"kernel 1", 1);
        let again = PairStore::open(dir.path()).unwrap();
        assert_eq!(again.find(&urls("a")), Some(pair.clone()));
        assert_eq!(again.find(&urls("b")), None);
        let path = again.path(&pair.key, PairFile::Kernel).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"kernel 1");
        for key in ["", ".", "..", "new-0", "0"] {
            assert_eq!(again.path(key, PairFile::Kernel), None);
        }
        let record = fs::read_to_string(dir.path().join(&pair.key).join(RECORD)).unwrap();
        assert!(!record.contains("secret"), "{record}");
    }

    #[test]
    fn the_next_pair_takes_the_place_of_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairStore::open(dir.path()).unwrap();
        let first = put(&store, "a", b"kernel 1", 1);
        let staging = store.begin(None).unwrap();
        assert_eq!(names(dir.path()).len(), 2, "one there, one on its way");
        drop(staging);
        assert_eq!(names(dir.path()), [first.key.as_str()]);
        let second = put(&store, "a", b"kernel 2", 2);
        assert_ne!(first.key, second.key, "the key is of the content too");
        assert_eq!(names(dir.path()), [second.key.as_str()]);
        let third = put(&store, "a", b"kernel 2", 3);
        assert_eq!(third.key, second.key);
        assert_eq!(store.find(&urls("a")).unwrap().fetched_ms, 3);
        store.keep(None).unwrap();
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn what_is_not_whole_is_removed_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairStore::open(dir.path()).unwrap();
        let pair = put(&store, "a", b"kernel 1", 1);
        fs::write(dir.path().join(&pair.key).join("image"), b"imag").unwrap();
        let cut = dir.path().join("new-7");
        fs::create_dir(&cut).unwrap();
        fs::write(cut.join("kernel"), b"kern").unwrap();
        fs::write(dir.path().join("stray"), b"").unwrap();
        let again = PairStore::open(dir.path()).unwrap();
        assert_eq!(again.find(&urls("a")), None);
        assert!(names(dir.path()).is_empty());
    }
}
