use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{KeyId, ReleaseVersion};

/// The rule that a release breaks. Each text begins with the name of the rule, and ends with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// A text is no version.
    #[error(
        "version: it is no version like 1.2.3 (Semantic Versioning, without build metadata); \
         correct it"
    )]
    VersionText,
    /// A text is no public key.
    #[error(
        "key: it is no public key of releases; write it as `metalmesh release keygen` prints it, \
         beginning with ed25519:"
    )]
    KeyText,
    /// A text is no secret key.
    #[error("key: it is no secret key of releases; make one with `metalmesh release keygen`")]
    SecretText,
    /// No key can be generated.
    #[error("key: the system gives no random numbers; try again")]
    Random,
    /// The bytes are no release.
    #[error("format: {0}; make the release with `metalmesh release sign`")]
    Format(String),
    /// No trusted key has signed it.
    #[error(
        "key: the release is signed with the key {0}, which is not trusted here; sign it with a \
         trusted key, or trust this one"
    )]
    UnknownKey(KeyId),
    /// The signature is not that of the manifest.
    #[error(
        "signature: it is not that of the key {0} for this manifest, so the file was changed; \
         publish the signed file again"
    )]
    Signature(KeyId),
    /// It is the release of another program.
    #[error("name: it is a release of {name}, and not of {wanted}; correct the URL")]
    Name {
        /// Name in the manifest.
        name: String,
        /// Name of the program that runs.
        wanted: String,
    },
    /// It is another version than the wanted one.
    #[error("version: it is {version}, and {wanted} is wanted; correct the version or the URL")]
    Version {
        /// Version in the manifest.
        version: ReleaseVersion,
        /// The wanted one.
        wanted: ReleaseVersion,
    },
    /// It is for other processors.
    #[error("architecture: it is for {architecture}, and this host is {own}; correct the URL")]
    Architecture {
        /// Architecture in the manifest.
        architecture: String,
        /// That of this host.
        own: String,
    },
    /// Control is too old for it.
    #[error(
        "mesh-level: it needs level {needed} of the mesh, and control has {own}; update control \
         first"
    )]
    MeshLevel {
        /// Level in the manifest.
        needed: u32,
        /// That of control.
        own: u32,
    },
    /// It is not valid yet.
    #[error(
        "not-before: it is valid from {}, and this host's clock says {}; wait, or correct the \
         clock", moment(.not_before_s), moment(.now_s)
    )]
    NotBefore {
        /// Begin of its validity, seconds since 1970.
        not_before_s: u64,
        /// Time of this host, seconds since 1970.
        now_s: u64,
    },
    /// It is not valid any more.
    #[error(
        "expiry: it was valid until {}, and this host's clock says {}; sign it again, or correct \
         the clock", moment(.expires_s), moment(.now_s)
    )]
    Expired {
        /// End of its validity, seconds since 1970.
        expires_s: u64,
        /// Time of this host, seconds since 1970.
        now_s: u64,
    },
    /// It is older than the program that runs.
    #[error(
        "downgrade: {version} is older than {running}, which runs; sign it with \
         `--allow-downgrade-from {running}` if that is meant"
    )]
    Downgrade {
        /// Version in the manifest.
        version: ReleaseVersion,
        /// Version of the program that runs.
        running: ReleaseVersion,
    },
    /// The payload is longer than its manifest says.
    #[error("size: there are more than the {bytes} bytes of the manifest; publish the file again")]
    TooLong {
        /// Length in the manifest, bytes.
        bytes: u64,
    },
    /// The payload is shorter than its manifest says.
    #[error("size: {bytes} of {expected} bytes arrived; publish the whole file")]
    Truncated {
        /// Bytes that arrived.
        bytes: u64,
        /// Length in the manifest, bytes.
        expected: u64,
    },
    /// The payload is not that of the manifest.
    #[error("digest: the SHA-256 is not that of the manifest; publish the signed file again")]
    Digest,
}

/// A time as people read it. A time that no calendar has is shown in seconds.
fn moment(seconds: &u64) -> String {
    let time = i64::try_from(*seconds)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{seconds} s"))
}
