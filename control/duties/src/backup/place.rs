//! A backup target: a directory or a bucket.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Certificate, ClientOptions, MultipartUpload, ObjectStore, ObjectStoreExt, RetryConfig,
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::BackupTargetError;
use super::s3::S3;
use super::settings::BackupLocation;
use super::{secret, trouble};
use crate::SettingError;

/// Suffix of a complete backup's name.
const SUFFIX: &str = ".backup";
/// Part of the names of unfinished files in a directory; a number follows it.
const UNFINISHED: &str = ".backup#";
/// Age at which an unfinished file is removed. Another node may still write a younger one.
const UNFINISHED_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Time limit of one request to a bucket: one part over a slow line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum repetitions of one request to a bucket. After them the whole backup fails and is retried
/// later.
const REQUEST_RETRIES: usize = 3;
/// Time limit for the repetitions of one request.
const REQUEST_RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// An opened backup target.
#[derive(Debug)]
pub(super) struct BackupTarget {
    /// Name in messages.
    pub(super) name: String,
    store: Arc<dyn ObjectStore>,
    folder: Path,
    /// The directory. `None` means a bucket.
    directory: Option<PathBuf>,
    /// The bucket's settings, for its error messages. `None` means a directory.
    bucket: Option<S3>,
    /// Prefix of the names of this cluster's backups. Other objects in the target are not touched.
    ours: String,
}

/// A complete backup in a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredBackup {
    pub(super) path: Path,
    /// Time of writing, milliseconds since the epoch.
    pub(super) made_ms: u64,
}

impl StoredBackup {
    /// `true` if its name tells a time after that of `latest`, another name: a wrong clock gave it the
    /// name. Of all backups it goes first, or it would stay and the backups of the right time would go.
    pub(super) fn is_after(&self, latest: &str) -> bool {
        self.path.filename().is_some_and(|name| name > latest)
    }
}

impl BackupTarget {
    /// Opens the target for backups of the cluster with this name and id. The id is needed because a
    /// restored cluster has the name of the old one.
    pub(super) fn new(
        place: &BackupLocation,
        cluster: &str,
        id: Uuid,
    ) -> Result<Self, SettingError> {
        let (name, store, folder, bucket): (_, Arc<dyn ObjectStore>, _, _) = match place {
            BackupLocation::Directory(dir) => (
                dir.display().to_string(),
                Arc::new(directory(dir)?),
                Path::default(),
                None,
            ),
            BackupLocation::S3(s3) => (
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
            BackupLocation::Directory(dir) => Some(dir.clone()),
            BackupLocation::S3(_) => None,
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

    /// Explains an error of this target.
    pub(super) fn explain(&self, error: object_store::Error) -> BackupTargetError {
        trouble::explain(self.bucket.as_ref(), error)
    }

    /// This cluster's backups, the oldest first.
    pub(super) async fn list(&self) -> Result<Vec<StoredBackup>, BackupTargetError> {
        let all = self.store.list(Some(&self.folder));
        let mut ours: Vec<StoredBackup> = all
            .map_ok(|object| StoredBackup {
                // A time before 1970 counts as the oldest: the backup is then due again, which is
                // the safe side.
                made_ms: u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0),
                path: object.location,
            })
            .try_collect()
            .await
            .map_err(|error| self.explain(error))?;
        ours.retain(|backup| self.is_ours(&backup.path));
        // The names contain the time, so their order is the order of time.
        ours.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ours)
    }

    /// `true` for the name of a complete backup of this cluster, directly in the target.
    fn is_ours(&self, path: &Path) -> bool {
        let name = path.filename().unwrap_or_default();
        let direct = path.parts().count() == self.folder.parts().count() + 1;
        direct && name.starts_with(&self.ours) && name.ends_with(SUFFIX)
    }

    /// The name of a backup made at `now_ms`.
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

    /// Begins an upload. The object gets its name when the upload is completed.
    pub(super) async fn upload(
        &self,
        name: &str,
    ) -> Result<Box<dyn MultipartUpload>, BackupTargetError> {
        let path = self.folder.clone().join(name);
        let upload = self.store.put_multipart(&path).await;
        upload.map_err(|error| self.explain(error))
    }

    /// Removes unfinished files that killed nodes left in a directory, once they are older than
    /// `UNFINISHED_LIFE`. Buckets have life-cycle rules for this.
    pub(super) async fn sweep(&self) -> Result<(), BackupTargetError> {
        let Some(dir) = self.directory.clone() else {
            return Ok(());
        };
        let ours = self.ours.clone();
        let sweep = move || -> io::Result<()> {
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
        let swept = tokio::task::spawn_blocking(sweep).await;
        Ok(swept.map_err(io::Error::other)??)
    }

    /// Removes a backup.
    pub(super) async fn remove(&self, there: &StoredBackup) -> Result<(), BackupTargetError> {
        let removed = self.store.delete(&there.path).await;
        removed.map_err(|error| self.explain(error))
    }
}

fn directory(dir: &FilePath) -> Result<LocalFileSystem, SettingError> {
    let problem = || format!("cannot use {}", dir.display());
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| SettingError::caused("backup.directory", problem(), error))?;
    let store = LocalFileSystem::new_with_prefix(dir)
        .map_err(|error| SettingError::caused("backup.directory", problem(), error))?;
    // Without fsync a complete backup could be lost with the page cache after older ones were
    // removed.
    Ok(store.with_fsync(true))
}

fn open_bucket(s3: &S3) -> Result<object_store::aws::AmazonS3, SettingError> {
    let is_http = s3.endpoint.starts_with("http://");
    let mut options = ClientOptions::new()
        .with_allow_http(is_http)
        .with_timeout(REQUEST_TIMEOUT);
    if let Some(path) = &s3.ca_file {
        // The operator named the authorities, so the system's are not trusted.
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
        // Some S3-compatible stores do not implement bulk deletion.
        .with_disable_bulk_delete(true)
        .with_access_key_id(secret("backup.s3.access_key_file", &s3.access_key_file)?)
        .with_secret_access_key(secret("backup.s3.secret_key_file", &s3.secret_key_file)?)
        .build()
        .map_err(|error| SettingError::caused("backup.s3", "cannot be used", error))
}

/// The certificates in the file that `backup.s3.ca_file` names, at least one.
fn authorities(path: &FilePath) -> Result<Vec<Certificate>, SettingError> {
    const FIELD: &str = "backup.s3.ca_file";
    let problem = || format!("cannot use {}", path.display());
    let pem = std::fs::read(path).map_err(|error| SettingError::caused(FIELD, problem(), error))?;
    let found = Certificate::from_pem_bundle(&pem)
        .map_err(|error| SettingError::caused(FIELD, problem(), error))?;
    if found.is_empty() {
        let problem = format!("there is no certificate in PEM in {}", path.display());
        return Err(SettingError::new(FIELD, problem));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(0x67e4_3279_0000_4000_8000_0000_0000_0001);

    #[test]
    fn names_sort_by_time_and_are_ours() {
        let dir = tempfile::tempdir().unwrap();
        let place = BackupLocation::Directory(dir.path().join("backups"));
        let opened = BackupTarget::new(&place, "east coast/1", ID).unwrap();
        let first = opened.name_of(1_700_000_000_000);
        let name = "metalmesh-east_coast_1-67e43279-20231114T221320Z.backup";
        assert_eq!(first, name);
        // A restored cluster has the name of the old one, and another id.
        let restored = BackupTarget::new(&place, "east coast/1", Uuid::from_u128(7)).unwrap();
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
    async fn backups_of_a_wrong_clock_go_before_those_of_the_right_one() {
        let dir = tempfile::tempdir().unwrap();
        let place = BackupLocation::Directory(dir.path().to_owned());
        let opened = BackupTarget::new(&place, "east", ID).unwrap();
        const NOW_MS: u64 = 1_700_000_000_000;
        const DAY_MS: u64 = 86_400_000;
        let times = [NOW_MS - DAY_MS, NOW_MS - 2 * DAY_MS, NOW_MS * 2, NOW_MS + 1];
        for at in times {
            std::fs::File::create(dir.path().join(opened.name_of(at))).unwrap();
        }
        let mut there = opened.list().await.unwrap();
        let latest = opened.name_of(NOW_MS + DAY_MS);
        there.sort_by_key(|backup| !backup.is_after(&latest));
        let names: Vec<_> = there
            .iter()
            .map(|backup| backup.path.filename().unwrap().to_owned())
            .collect();
        let wanted = [NOW_MS * 2, NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS, NOW_MS + 1];
        assert_eq!(names, wanted.map(|at| opened.name_of(at)));
    }

    #[tokio::test]
    async fn what_was_never_finished_goes_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let place = BackupLocation::Directory(dir.path().to_owned());
        let opened = BackupTarget::new(&place, "east", ID).unwrap();
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
