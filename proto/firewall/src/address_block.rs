use serde::{Deserialize, Serialize};

/// A prefix, and those in it that are excepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressBlock {
    /// The prefix, canonical: `10.0.0.0/8`.
    pub cidr: String,
    /// Prefixes in `cidr` that are left out, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// Destinations by their name in the DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamePattern {
    /// The whole name: `www.example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_name: Option<String>,
    /// A name with `*` for any part: `*.example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_pattern: Option<String>,
}
