//! Rules by which a pool publishes labels and annotations of its hosts as metadata of claims.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Most keys, prefixes and patterns of a list of rules together; a request with more is refused.
pub const METADATA_RULES_MAX: usize = 64;
/// Most labels, and annotations, of the metadata of a claim; the last ones by key are left out.
pub const METADATA_ENTRIES_MAX: usize = 64;
/// Most bytes of the labels, and of the annotations, of the metadata of a claim, keys included; the last
/// ones by key are left out.
pub const METADATA_BYTES_MAX: usize = 16 * 1024;
/// Most annotations of a host; a request with more is refused.
pub const ANNOTATIONS_MAX: usize = 64;

/// Domains of keys with a meaning to a cluster: metadata that is copied to its objects must not set one.
const DENIED_DOMAINS: [&str; 5] = [
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "pod-security",
    "metal3.io",
];

/// A list of keys that are published: those that one of the rules names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyRules {
    /// Keys.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<String>,
    /// Beginnings of keys.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub prefixes: BTreeSet<String>,
    /// Regular expressions, which must match the key as a whole.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub patterns: BTreeSet<String>,
}

/// Labels and annotations of the hosts of a pool that claims repeat. No rule publishes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetadataRules {
    /// Keys of labels.
    pub labels: KeyRules,
    /// Keys of annotations.
    pub annotations: KeyRules,
}

impl MetadataRules {
    /// `true` if they publish nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `true` if the key, or a beginning of keys, is in a domain that no rule publishes.
pub(crate) fn is_denied(key: &str) -> bool {
    let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
    let domain = domain.to_ascii_lowercase();
    DENIED_DOMAINS.iter().any(|denied| {
        let rest = domain.strip_suffix(denied);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_cluster_are_denied() {
        for (key, is_one) in [
            ("kubernetes.io/hostname", true),
            ("node.kubernetes.io/exclude", true),
            ("Node.Kubernetes.IO/exclude", true),
            ("k8s.io/a", true),
            ("a.k8s.io/b", true),
            ("cluster.x-k8s.io/paused", true),
            ("x-k8s.io/a", true),
            ("pod-security/enforce", true),
            ("pod-security.kubernetes.io/enforce", true),
            ("metal3.io/a", true),
            ("reboot.metal3.io", true),
            ("reboot.metal3.io/key", true),
            ("notkubernetes.io/a", false),
            ("kubernetes.io.example.com/a", false),
            ("example.com/kubernetes.io", false),
            ("infra-kind", false),
            ("", false),
        ] {
            assert_eq!(is_denied(key), is_one, "{key}");
        }
    }
}
