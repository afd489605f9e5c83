//! Pairs on disk: `<key>/kernel`, `<key>/image`, `<key>/pair.json`. A pair that is being fetched is
//! in `new-<number>` until one rename installs it. Leftovers of a crash are removed at the start.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use pixie_boot::InstallerUrls;

use super::pair::{Pair, PairFile, VERSION, digest};
use crate::leasefile::{read_json, write_json};

const NEW: &str = "new-";
const RECORD: &str = "pair.json";

/// The directory of all pairs. It keeps at most one, beside one that is being fetched.
#[derive(Debug)]
pub(crate) struct PairStore {
    dir: PathBuf,
    pairs: RwLock<Vec<Pair>>,
    /// Number of the next staging directory. No number is used twice, so that the cleanup of a
    /// cancelled download never removes the next one.
    downloads: AtomicU64,
}

impl PairStore {
    /// Opens the directory and removes everything that is not a complete pair.
    ///
    /// # Errors
    /// If the directory cannot be created, read or cleaned.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(dir)?;
        let mut pairs = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            match read_pair(&path) {
                Some(pair) => pairs.push(pair),
                // An interrupted download leaves an incomplete pair. No later step would find it, so
                // it would fill the disk.
                None => remove(&path)?,
            }
        }
        Ok(Self {
            dir: dir.into(),
            pairs: RwLock::new(pairs),
            downloads: AtomicU64::new(0),
        })
    }

    /// The newest pair that was fetched from exactly these URLs. `None` means that there is none.
    pub(crate) fn find(&self, urls: &InstallerUrls) -> Option<Pair> {
        let urls = digest(&[&urls.kernel, &urls.image]);
        let pairs = self.pairs.read();
        let of_urls = pairs.iter().filter(|pair| pair.urls == urls);
        of_urls.max_by_key(|pair| pair.fetched_ms).cloned()
    }

    /// Path of a file of a pair. `None` means that there is no such pair.
    pub(crate) fn path(&self, key: &str, file: PairFile) -> Option<PathBuf> {
        let pairs = self.pairs.read();
        let pair = pairs.iter().find(|pair| pair.key == key)?;
        Some(self.dir.join(&pair.key).join(file.name()))
    }

    /// Creates a staging directory for the next pair. Of the existing pairs only `known` stays, or
    /// the newest if it is `None`, so that there are never more than two on disk.
    ///
    /// # Errors
    /// The error of the file system.
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

    /// Links an unchanged file from an existing pair into the staging directory.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn link(&self, pair: &Pair, file: PairFile, staging: &Staging) -> io::Result<()> {
        let from = self.dir.join(&pair.key).join(file.name());
        // A hard link needs no space and stays when the old pair is removed.
        fs::hard_link(from, staging.path(file))
    }

    /// Installs the fetched pair as the only one. Its files are synced already.
    ///
    /// # Errors
    /// The error of the file system; the previous pairs then still exist.
    pub(crate) fn install(&self, staging: Staging, pair: Pair) -> io::Result<()> {
        let path = self.dir.join(&pair.key);
        if path.exists() {
            // The content is the same; only its `ETag` or date on the server has changed.
            write_json(&path.join(RECORD), &pair)?;
        } else {
            write_json(&staging.0.join(RECORD), &pair)?;
            // One rename makes record and both files visible together. Without the sync of the
            // directory a power failure could undo it after machines were sent to the pair.
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

    /// Removes all pairs except the one with this key. `None` means all.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn keep(&self, key: Option<&str>) -> io::Result<()> {
        // A pair leaves the list before its files do, so that no script names a missing file.
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

/// A staging directory. Dropping it removes the directory, unless it was renamed to a pair.
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
            tracing::warn!(path = %self.0.display(), %error, "staging directory not removed");
        }
    }
}

/// Reads a pair. `None` means that the path is not a pair or not complete.
fn read_pair(path: &Path) -> Option<Pair> {
    let pair: Pair = read_json(&path.join(RECORD)).ok()??;
    // Only the lengths are compared: the record is written after both files are synced, and hashing
    // hundreds of megabytes would delay the start.
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

/// Removes a file or a directory. A missing one is not an error.
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
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::installer::pair::FetchedFile;

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
        let pair = Pair::new(&urls(name), fetched(kernel), fetched(b"image"), fetched_ms);
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
