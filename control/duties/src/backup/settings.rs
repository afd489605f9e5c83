//! When backups are made, for whom, and where they go.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use proto_backup::Recipients;
use serde::Deserialize;

/// Most backups of a place that may be kept.
const KEEP_MAX: usize = 10_000;

/// The `[backup]` section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    every_minutes: Option<u64>,
    keep: Option<usize>,
    recipients: Vec<String>,
    directory: Option<PathBuf>,
    s3: Option<S3>,
}

/// A bucket of an S3-compatible store.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct S3 {
    pub endpoint: String,
    pub bucket: String,
    #[serde(default = "default_region")]
    pub region: String,
    #[serde(default)]
    pub prefix: String,
    pub access_key_file: PathBuf,
    pub secret_key_file: PathBuf,
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

/// Where backups go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Directory(PathBuf),
    S3(S3),
}

/// What is to be done, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub every: Duration,
    /// Backups of a place; older ones are removed.
    pub keep: usize,
    /// age recipients; not empty.
    pub recipients: Vec<String>,
    pub places: Vec<Place>,
}

impl Section {
    /// Checks the section; none when it names no place.
    pub fn check(self) -> Result<Option<Schedule>> {
        let every = self.every_minutes.unwrap_or(24 * 60);
        ensure!(every > 0, "backup.every_minutes: must be 1 or more");
        let keep = self.keep.unwrap_or(14);
        ensure!(
            (1..=KEEP_MAX).contains(&keep),
            "backup.keep: must be between 1 and {KEEP_MAX}"
        );
        let mut places: Vec<Place> = self.directory.into_iter().map(Place::Directory).collect();
        if let Some(s3) = self.s3 {
            check_endpoint(&s3.endpoint)?;
            places.push(Place::S3(s3));
        }
        if places.is_empty() {
            return Ok(None);
        }
        Recipients::parse(self.recipients.iter().map(String::as_str))
            .context("backup.recipients")?;
        ensure!(
            !self.recipients.is_empty(),
            "backup.recipients: is empty; make a key on another machine with age-keygen or \
             `metalmesh cluster backup`, and name its public half here"
        );
        Ok(Some(Schedule {
            every: Duration::from_secs(every.saturating_mul(60)),
            keep,
            recipients: self.recipients,
            places,
        }))
    }
}

fn check_endpoint(text: &str) -> Result<()> {
    const LIKE: &str = "backup.s3.endpoint: is not a URL like https://s3.example";
    let url = reqwest::Url::parse(text).context(LIKE)?;
    // Not repeated: there is a password in it.
    ensure!(
        url.username().is_empty() && url.password().is_none(),
        "backup.s3.endpoint: must not hold a user or a password; keys go into \
         backup.s3.access_key_file and backup.s3.secret_key_file"
    );
    ensure!(
        matches!(url.scheme(), "http" | "https") && url.has_host(),
        "{LIKE}, but {text:?}"
    );
    Ok(())
}
