//! Selectors: which labels a host must have.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::meta::Labels;

/// Most labels and terms of a selector together; a request with more is refused.
pub const SELECTOR_TERMS_MAX: usize = 32;
/// Most values of a term; a request with more is refused.
pub const SELECTOR_VALUES_MAX: usize = 64;

/// The comparison of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectorOp {
    /// The label has one of the values.
    In,
    /// The label is missing, or has another value.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

/// A term of a selector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SelectorTerm {
    /// Key of the label.
    pub key: String,
    /// The comparison.
    pub op: SelectorOp,
    /// Values of `In` and `NotIn`; empty for the others.
    #[serde(default)]
    pub values: BTreeSet<String>,
}

/// A selector: all of it must hold. An empty one holds for every host.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimSelector {
    /// Labels that the host must have with these values.
    pub labels: Labels,
    /// Further terms.
    pub terms: Vec<SelectorTerm>,
}

impl SelectorTerm {
    fn holds(&self, value: Option<&str>) -> bool {
        match self.op {
            SelectorOp::In => value.is_some_and(|value| self.values.contains(value)),
            SelectorOp::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            SelectorOp::Exists => value.is_some(),
            SelectorOp::DoesNotExist => value.is_none(),
        }
    }
}

impl ClaimSelector {
    /// `true` if it holds for the labels that `value_of` knows.
    pub fn holds<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        let mut labels = self.labels.iter();
        labels.all(|(key, value)| value_of(key) == Some(value.as_str()))
            && self
                .terms
                .iter()
                .all(|term| term.holds(value_of(&term.key)))
    }

    /// `true` if it asks about the label of this key.
    pub(crate) fn mentions(&self, key: &str) -> bool {
        self.labels.contains_key(key) || self.terms.iter().any(|term| term.key == key)
    }
}
