//! The section `[backup.s3]`: a bucket of an S3-compatible store.

use std::path::PathBuf;

use serde::Deserialize;

/// A bucket of an S3-compatible store.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct S3 {
    /// URL of the store, without the bucket.
    pub endpoint: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Region that requests are signed for.
    #[serde(default = "default_region")]
    pub region: String,
    /// Folder in the bucket. Empty means its top.
    #[serde(default)]
    pub prefix: String,
    /// File with the id of the access key.
    pub access_key_file: PathBuf,
    /// File with the secret of the access key.
    pub secret_key_file: PathBuf,
    /// PEM file of the only trusted authorities. `None` means the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

fn default_region() -> String {
    "us-east-1".to_owned()
}
