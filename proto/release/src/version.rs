use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ReleaseError;

/// Longest version, bytes.
const VERSION_LEN_MAX: usize = 64;

/// The version of a release, ordered as Semantic Versioning 2.0.0 says. Its text has no `v` in
/// front; parsing accepts one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReleaseVersion(semver::Version);

impl FromStr for ReleaseVersion {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let number = text.strip_prefix('v').unwrap_or(text);
        let parsed = (number.len() <= VERSION_LEN_MAX).then(|| semver::Version::parse(number));
        match parsed {
            // Versions that differ in their build metadata alone have no order.
            Some(Ok(version)) if version.build.is_empty() => Ok(Self(version)),
            _ => Err(ReleaseError::VersionText),
        }
    }
}

impl TryFrom<String> for ReleaseVersion {
    type Error = ReleaseError;

    fn try_from(text: String) -> Result<Self, ReleaseError> {
        text.parse()
    }
}

impl From<ReleaseVersion> for String {
    fn from(version: ReleaseVersion) -> Self {
        version.to_string()
    }
}

impl fmt::Display for ReleaseVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}
