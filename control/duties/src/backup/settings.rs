//! The section `[backup]`: schedule, recipients and targets of backups.

use std::path::PathBuf;
use std::time::Duration;

use proto_backup::Recipients;
use serde::Deserialize;

use super::s3::S3;
use crate::SettingError;

/// Maximum of `backup.keep`. A larger value is refused.
const KEEP_MAX: usize = 10_000;

/// Default of `backup.every_minutes`: one day.
const EVERY_MINUTES: u64 = 24 * 60;
/// Default of `backup.keep`: two weeks of daily backups.
const KEEP: usize = 14;

/// The section `[backup]` as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackupSection {
    every_minutes: Option<u64>,
    keep: Option<usize>,
    recipients: Vec<String>,
    directory: Option<PathBuf>,
    s3: Option<S3>,
}

/// The location of a backup target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupLocation {
    /// A directory of the node.
    Directory(PathBuf),
    /// A bucket.
    S3(S3),
}

/// The checked section `[backup]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Interval between two backups.
    pub every: Duration,
    /// Number of backups kept in each target. Older ones are removed.
    pub keep: usize,
    /// age recipients that the backups are encrypted for. Never empty.
    pub recipients: Vec<String>,
    /// The targets. Never empty.
    pub places: Vec<BackupLocation>,
}

impl BackupSection {
    /// Checks the section. `None` means that it names no target.
    ///
    /// # Errors
    /// The first fault; the message names the field.
    pub fn check(self) -> Result<Option<Schedule>, SettingError> {
        let every = self.every_minutes.unwrap_or(EVERY_MINUTES);
        if every == 0 {
            return Err(SettingError::new(
                "backup.every_minutes",
                "must be 1 or more",
            ));
        }
        let keep = self.keep.unwrap_or(KEEP);
        if !(1..=KEEP_MAX).contains(&keep) {
            let problem = format!("must be between 1 and {KEEP_MAX}");
            return Err(SettingError::new("backup.keep", problem));
        }
        let mut places: Vec<BackupLocation> = self
            .directory
            .into_iter()
            .map(BackupLocation::Directory)
            .collect();
        if let Some(s3) = self.s3 {
            check_endpoint(&s3.endpoint)?;
            places.push(BackupLocation::S3(s3));
        }
        if places.is_empty() {
            return Ok(None);
        }
        Recipients::parse(self.recipients.iter().map(String::as_str))
            .map_err(|error| SettingError::new("backup.recipients", error.to_string()))?;
        if self.recipients.is_empty() {
            return Err(SettingError::new(
                "backup.recipients",
                "is empty; make a key on another machine with age-keygen or \
                 `metalmesh cluster backup`, and name its public half here",
            ));
        }
        Ok(Some(Schedule {
            every: Duration::from_secs(every.saturating_mul(60)),
            keep,
            recipients: self.recipients,
            places,
        }))
    }
}

fn check_endpoint(text: &str) -> Result<(), SettingError> {
    const FIELD: &str = "backup.s3.endpoint";
    const LIKE: &str = "is not a URL like https://s3.example";
    let url =
        reqwest::Url::parse(text).map_err(|error| SettingError::caused(FIELD, LIKE, error))?;
    // Checked before the error that quotes the URL: the message would contain the password.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SettingError::new(
            FIELD,
            "must not hold a user or a password; keys go into backup.s3.access_key_file and \
             backup.s3.secret_key_file",
        ));
    }
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(SettingError::new(FIELD, format!("{LIKE}, but {text:?}")));
    }
    Ok(())
}
