/// The program that replaces itself, as its releases and its source name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdatingProgram {
    /// Its name in manifests, which is that of its binary. A release of another program is refused.
    pub name: &'static str,
    /// The fields by which its source names a release.
    pub fields: ReleaseFields,
    /// The reason of a trial that ends without a confirmation: "its rules were not in force".
    pub unhealthy: &'static str,
}

/// Names of the fields by which a source names a release. Problems begin with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseFields {
    /// The version.
    pub version: &'static str,
    /// The place.
    pub url: &'static str,
    /// SHA-256 of the signed head.
    pub digest: &'static str,
}
