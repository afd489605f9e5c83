//! A directory or a bucket that backups go to.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Certificate, ClientOptions, MultipartUpload, ObjectStore, ObjectStoreExt, RetryConfig,
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::settings::{Place, S3};
use super::{secret, trouble};

const SUFFIX: &str = ".backup";
/// In names of files that are being written, with a number behind it.
const UNFINISHED: &str = ".backup#";
const UNFINISHED_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Longest time for one request to a bucket: a part over a slow line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// How often and how long one request is repeated. What does not work then is told, and tried
/// again as a whole later.
const REQUEST_RETRIES: usize = 3;
const REQUEST_RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// A place that can be used.
#[derive(Debug)]
pub(super) struct Opened {
    /// For people.
    pub(super) name: String,
    store: Arc<dyn ObjectStore>,
    folder: Path,
    /// If it is one of this machine.
    directory: Option<PathBuf>,
    /// Of a bucket, for what is said about its errors.
    bucket: Option<S3>,
    /// Begin of the names of this cluster's backups: others in the same place are left alone.
    ours: String,
}

/// A backup that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct There {
    pub(super) path: Path,
    /// When it was written, milliseconds since the epoch.
    pub(super) made_ms: u64,
}

impl Opened {
    /// The place, for backups of the cluster of this name and id: names alone are not unique.
    pub(super) fn new(place: &Place, cluster: &str, id: Uuid) -> Result<Self> {
        let (name, store, folder, bucket): (_, Arc<dyn ObjectStore>, _, _) = match place {
            Place::Directory(dir) => (
                dir.display().to_string(),
                Arc::new(directory(dir)?),
                Path::default(),
                None,
            ),
            Place::S3(s3) => (
                format!("{}/{}", s3.endpoint, s3.bucket),
                Arc::new(open_bucket(s3)?),
                Path::from(s3.prefix.as_str()),
                Some(s3.clone()),
            ),
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let cluster: String = cluster.chars().map(plain).collect();
        let (id, _, _, _) = id.as_fields();
        let directory = match place {
            Place::Directory(dir) => Some(dir.clone()),
            Place::S3(_) => None,
        };
        Ok(Self {
            name,
            store,
            folder,
            directory,
            bucket,
            ours: format!("metalmesh-{cluster}-{id:08x}-"),
        })
    }

    /// What an error of this place means.
    pub(super) fn explain(&self, error: object_store::Error) -> anyhow::Error {
        trouble::explain(self.bucket.as_ref(), error)
    }

    /// Our backups, the oldest first.
    pub(super) async fn list(&self) -> Result<Vec<There>> {
        let all = self.store.list(Some(&self.folder));
        let mut ours: Vec<There> = all
            .try_filter_map(|it| async move {
                let made_ms = u64::try_from(it.last_modified.timestamp_millis()).unwrap_or(0);
                Ok(Some(There {
                    path: it.location,
                    made_ms,
                }))
            })
            .try_collect()
            .await
            .map_err(|error| self.explain(error))?;
        ours.retain(|it| self.is_ours(&it.path));
        // The names hold the time, so that they sort.
        ours.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ours)
    }

    fn is_ours(&self, path: &Path) -> bool {
        let name = path.filename().unwrap_or_default();
        let direct = path.parts().count() == self.folder.parts().count() + 1;
        direct && name.starts_with(&self.ours) && name.ends_with(SUFFIX)
    }

    /// The name of a backup that is made now.
    pub(super) fn name_of(&self, now_ms: u64) -> String {
        let seconds = i64::try_from(now_ms / 1000).unwrap_or(0);
        let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (date, time) = (at.date(), at.time());
        format!(
            "{}{:04}{:02}{:02}T{:02}{:02}{:02}Z{SUFFIX}",
            self.ours,
            date.year(),
            u8::from(date.month()),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        )
    }

    pub(super) async fn upload(&self, name: &str) -> Result<Box<dyn MultipartUpload>> {
        let path = self.folder.clone().join(name);
        let upload = self.store.put_multipart(&path).await;
        upload.map_err(|error| self.explain(error))
    }

    /// Removes what nodes that were killed had begun to write into a directory, a day later: it may
    /// be another node's that writes still. Buckets have rules for that.
    pub(super) async fn sweep(&self) -> Result<()> {
        let Some(dir) = self.directory.clone() else {
            return Ok(());
        };
        let ours = self.ours.clone();
        let sweep = move || {
            for entry in std::fs::read_dir(&dir)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_part = name.starts_with(&ours) && name.contains(UNFINISHED);
                let age = entry.metadata()?.modified()?.elapsed();
                if is_part && age.is_ok_and(|age| age > UNFINISHED_LIFE) {
                    std::fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        tokio::task::spawn_blocking(sweep).await?
    }

    pub(super) async fn remove(&self, there: &There) -> Result<()> {
        let removed = self.store.delete(&there.path).await;
        removed.map_err(|error| self.explain(error))
    }
}

fn directory(dir: &FilePath) -> Result<LocalFileSystem> {
    let named = || format!("backup.directory: cannot use {}", dir.display());
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(named)?;
    let store = LocalFileSystem::new_with_prefix(dir).with_context(named)?;
    Ok(store.with_fsync(true))
}

fn open_bucket(s3: &S3) -> Result<object_store::aws::AmazonS3> {
    let is_http = s3.endpoint.starts_with("http://");
    let mut options = ClientOptions::new()
        .with_allow_http(is_http)
        .with_timeout(REQUEST_TIMEOUT);
    if let Some(path) = &s3.ca_file {
        // Who names an authority trusts no other one.
        options = options.with_no_system_certificates(true);
        for authority in authorities(path)? {
            options = options.with_root_certificate(authority);
        }
    }
    let retry = RetryConfig {
        max_retries: REQUEST_RETRIES,
        retry_timeout: REQUEST_RETRY_TIMEOUT,
        ..RetryConfig::default()
    };
    AmazonS3Builder::new()
        .with_client_options(options)
        .with_retry(retry)
        .with_endpoint(&s3.endpoint)
        .with_bucket_name(&s3.bucket)
        .with_region(&s3.region)
        // Not every S3-compatible store deletes many at once.
        .with_disable_bulk_delete(true)
        .with_access_key_id(secret("backup.s3.access_key_file", &s3.access_key_file)?)
        .with_secret_access_key(secret("backup.s3.secret_key_file", &s3.secret_key_file)?)
        .build()
        .context("backup.s3: cannot be used")
}

/// The certificates of `ca_file`; one at least.
fn authorities(path: &FilePath) -> Result<Vec<Certificate>> {
    let named = || format!("backup.s3.ca_file: cannot use {}", path.display());
    let pem = std::fs::read(path).with_context(named)?;
    let found = Certificate::from_pem_bundle(&pem).with_context(named)?;
    ensure!(
        !found.is_empty(),
        "backup.s3.ca_file: there is no certificate in PEM in {}",
        path.display()
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(0x67e4_3279_0000_4000_8000_0000_0000_0001);

    #[test]
    fn names_sort_by_time_and_are_ours() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::Directory(dir.path().join("backups"));
        let opened = Opened::new(&place, "east coast/1", ID).unwrap();
        let first = opened.name_of(1_700_000_000_000);
        let name = "metalmesh-east_coast_1-67e43279-20231114T221320Z.backup";
        assert_eq!(first, name);
        // A restored cluster has the name of the old one, and another id.
        let restored = Opened::new(&place, "east coast/1", Uuid::from_u128(7)).unwrap();
        assert!(!restored.is_ours(&Path::from(name)));
        assert!(opened.name_of(1_700_000_001_000) > first);
        assert!(opened.is_ours(&Path::from(first.as_str())));
        for foreign in [
            "metalmesh-west-20231114T221320Z.backup",
            "sub/x.backup",
            "notes.txt",
        ] {
            assert!(!opened.is_ours(&Path::from(foreign)), "{foreign}");
        }
    }

    #[tokio::test]
    async fn what_was_never_finished_goes_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::Directory(dir.path().to_owned());
        let opened = Opened::new(&place, "east", ID).unwrap();
        let name = opened.name_of(1_700_000_000_000);
        let two_days = Duration::from_secs(48 * 3600);
        let long_ago = std::time::SystemTime::now() - two_days;
        for (name, modified) in [
            (format!("{name}#1"), Some(long_ago)),
            (format!("{name}#2"), None),
            (format!("other-{name}#1"), Some(long_ago)),
            (name.clone(), Some(long_ago)),
        ] {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            if let Some(modified) = modified {
                file.set_modified(modified).unwrap();
            }
        }
        opened.sweep().await.unwrap();
        let there = |name: String| dir.path().join(name).exists();
        assert!(!there(format!("{name}#1")));
        for kept in [format!("{name}#2"), format!("other-{name}#1"), name] {
            assert!(there(kept.clone()), "{kept}");
        }
    }
}
