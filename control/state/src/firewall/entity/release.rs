//! The release of the firewalls' agent that the site wants.

use proto_types::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// The release of `metalmesh-firewall` that every firewall is told of. There is one, or none.
/// Control has no key of releases: a firewall runs it only if a key of its own files has signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRelease {
    /// The key: [`FirewallRelease::SITE`].
    pub name: String,
    /// Its version, as Semantic Versioning has it.
    pub version: String,
    /// Its place, https.
    pub url: String,
    /// SHA-256 of its signed head.
    pub head_digest: Digest,
    /// Login of the caller that set it.
    pub set_by: String,
    /// Time of that.
    pub set_at: Timestamp,
}

impl FirewallRelease {
    /// Name of the one that there is.
    pub const SITE: &'static str = "site";
}
