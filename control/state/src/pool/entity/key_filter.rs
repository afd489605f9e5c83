//! Rules of keys with their patterns compiled: made when a pool is written or loaded, and kept in the
//! index.

use std::fmt;

use proto_errors::Error;
use regex::bytes::RegexSet;

use super::patterns::compile;
use crate::meta::Labels;
use crate::pool::entity::{
    KeyRules, METADATA_BYTES_MAX, METADATA_ENTRIES_MAX, METADATA_RULES_MAX, MetadataRules,
    is_denied,
};

/// Longest key or prefix of a rule, bytes; a longer one is refused.
const KEY_BYTES_MAX: usize = 253;

/// Rules of keys, ready to be asked.
#[derive(Clone)]
pub(crate) struct KeyFilter {
    rules: KeyRules,
    /// The patterns. `None` means that a stored one cannot be compiled: patterns publish nothing then.
    patterns: Option<RegexSet>,
}

/// The rules of a pool, ready to be asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MetadataFilter {
    /// Of labels.
    pub(crate) labels: KeyFilter,
    /// Of annotations.
    pub(crate) annotations: KeyFilter,
}

impl KeyFilter {
    fn of(rules: &KeyRules) -> Self {
        Self {
            rules: rules.clone(),
            patterns: compile(rules.patterns.iter()).ok(),
        }
    }

    /// Checks rules before they are written.
    ///
    /// # Errors
    /// `InvalidField` for too many, a key that is none or that no rule publishes, or a pattern that is
    /// not one.
    fn check(field: &str, rules: &KeyRules) -> Result<(), Error> {
        let count = rules.keys.len() + rules.prefixes.len() + rules.patterns.len();
        if count > METADATA_RULES_MAX {
            let rule = format!("must have at most {METADATA_RULES_MAX} rules");
            return Err(Error::invalid(field, rule));
        }
        for text in rules.keys.iter().chain(&rules.prefixes) {
            let is_text = (1..=KEY_BYTES_MAX).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_text {
                let rule =
                    format!("\"{text}\" must have 1 to {KEY_BYTES_MAX} printable ASCII characters");
                return Err(Error::invalid(field, rule));
            }
            if is_denied(text) {
                let rule = format!(
                    "\"{text}\" has a meaning to the cluster that would take it: keys of \
                     kubernetes.io, k8s.io, x-k8s.io, pod-security and metal3.io are not published"
                );
                return Err(Error::invalid(field, rule));
            }
        }
        let wrong = |reason| Error::invalid(field, format!("a pattern is wrong: {reason}"));
        compile(rules.patterns.iter()).map(drop).map_err(wrong)
    }

    fn publishes(&self, key: &str) -> bool {
        let is_named = || {
            let mut prefixes = self.rules.prefixes.iter();
            self.rules.keys.contains(key)
                || prefixes.any(|prefix| key.starts_with(prefix.as_str()))
                || self
                    .patterns
                    .as_ref()
                    .is_some_and(|patterns| patterns.is_match(key.as_bytes()))
        };
        !is_denied(key) && is_named()
    }

    /// The pairs that are published, in the order of their keys as far as they fit, and the number of
    /// those that do not.
    pub(crate) fn published(&self, pairs: &Labels) -> (Labels, usize) {
        let (mut taken, mut bytes, mut omitted) = (Labels::new(), 0, 0);
        for (key, value) in pairs.iter().filter(|(key, _)| self.publishes(key)) {
            bytes += key.len() + value.len();
            if taken.len() < METADATA_ENTRIES_MAX && bytes <= METADATA_BYTES_MAX {
                taken.insert(key.clone(), value.clone());
            } else {
                omitted += 1;
            }
        }
        (taken, omitted)
    }
}

impl MetadataFilter {
    /// The rules of a stored pool.
    pub(crate) fn of(rules: &MetadataRules) -> Self {
        Self {
            labels: KeyFilter::of(&rules.labels),
            annotations: KeyFilter::of(&rules.annotations),
        }
    }

    /// Checks rules before they are written.
    ///
    /// # Errors
    /// `InvalidField` with the list.
    pub(crate) fn check(rules: &MetadataRules) -> Result<(), Error> {
        KeyFilter::check("metadata.labels", &rules.labels)?;
        KeyFilter::check("metadata.annotations", &rules.annotations)
    }
}

/// Two filters are equal if their rules are: the patterns follow from them.
impl PartialEq for KeyFilter {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl fmt::Debug for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(keys: &[&str], prefixes: &[&str], patterns: &[&str]) -> KeyRules {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        KeyRules {
            keys: set(keys),
            prefixes: set(prefixes),
            patterns: set(patterns),
        }
    }

    #[test]
    fn a_key_is_published_by_one_of_the_rules_and_never_against_the_list_of_denied_ones() {
        let filter = KeyFilter::of(&rules(&["kind"], &["gpu-"], &["rack/[0-9]+", ".*io/.*"]));
        for (key, is_published) in [
            ("kind", true),
            ("kinds", false),
            ("gpu-", true),
            ("gpu-model", true),
            ("my-gpu-model", false),
            ("rack/12", true),
            ("rack/12a", false),
            ("x-rack/12", false),
            ("example.io/a", true),
            ("node.kubernetes.io/a", false),
            ("metal3.io/a", false),
        ] {
            assert_eq!(filter.publishes(key), is_published, "{key}");
        }
        assert!(!KeyFilter::of(&KeyRules::default()).publishes("kind"));
    }

    #[test]
    fn more_than_fits_is_left_out_and_counted() {
        let filter = KeyFilter::of(&rules(&[], &[], &[".*"]));
        let many: Labels = (0..70)
            .map(|n| (format!("key-{n:02}"), "v".into()))
            .collect();
        let (taken, omitted) = filter.published(&many);
        assert_eq!((taken.len(), omitted), (METADATA_ENTRIES_MAX, 6));
        assert!(taken.contains_key("key-63") && !taken.contains_key("key-64"));
        let long: Labels = (0..20)
            .map(|n| (format!("key-{n:02}"), "v".repeat(1_018)))
            .collect();
        let (taken, omitted) = filter.published(&long);
        assert_eq!((taken.len(), omitted), (16, 4));
    }

    #[test]
    fn rules_that_are_refused() {
        let many: Vec<String> = (0..65).map(|n| format!("key-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (rules, word) in [
            (rules(&many, &[], &[]), "at most"),
            (rules(&[""], &[], &[]), "printable"),
            (rules(&["a b"], &[], &[]), "printable"),
            (rules(&["metal3.io/a"], &[], &[]), "cluster"),
            (rules(&[], &["node.kubernetes.io/"], &[]), "cluster"),
            (rules(&[], &[], &["("]), "pattern"),
            (rules(&[], &[], &["(?i)a"]), "pattern"),
        ] {
            let refused = KeyFilter::check("metadata.labels", &rules).unwrap_err();
            assert!(refused.to_string().contains(word), "{rules:?}: {refused}");
            assert!(refused.to_string().contains("metadata.labels"), "{refused}");
        }
        assert!(KeyFilter::check("f", &rules(&["a"], &["b"], &["c.*"])).is_ok());
    }
}
