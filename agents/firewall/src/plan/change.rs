use std::fmt;

use crate::model::{BaseChain, Element, NftRule, SetSpec, TABLE};

/// An element of a set with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedElement {
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub element: Element,
}

/// A change of our table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Creates the table.
    AddTable,
    /// Removes the table with everything in it. Only ever followed by its creation.
    RemoveTable,
    /// Creates a counter at zero.
    AddCounter(String),
    /// Removes a counter.
    RemoveCounter(String),
    /// Creates a set.
    AddSet {
        /// Name.
        set: String,
        /// Layout.
        spec: SetSpec,
    },
    /// Removes a set.
    RemoveSet(String),
    /// Adds elements.
    AddElements {
        /// Name of the set.
        set: String,
        /// Layout of the set.
        spec: SetSpec,
        /// Elements.
        elements: Vec<KeyedElement>,
    },
    /// Removes elements.
    RemoveElements {
        /// Name of the set.
        set: String,
        /// Layout of the set.
        spec: SetSpec,
        /// Elements.
        elements: Vec<KeyedElement>,
    },
    /// Creates a chain.
    AddChain {
        /// Name.
        chain: String,
        /// Hook.
        base: Option<BaseChain>,
    },
    /// Removes a chain.
    RemoveChain(String),
    /// Adds a rule before another one, or at the end.
    AddRule {
        /// Name of the chain.
        chain: String,
        /// Handle of the rule after it.
        before: Option<u64>,
        /// The rule.
        rule: NftRule,
    },
    /// Removes a rule.
    RemoveRule {
        /// Name of the chain.
        chain: String,
        /// The kernel's number of the rule.
        handle: u64,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddTable => write!(out, "add table {TABLE}"),
            Self::RemoveTable => write!(out, "remove table {TABLE}, to create it again"),
            Self::AddCounter(name) => write!(out, "add counter {name}"),
            Self::RemoveCounter(name) => write!(out, "remove counter {name}"),
            Self::AddSet { set, .. } => write!(out, "add set {set}"),
            Self::RemoveSet(name) => write!(out, "remove set {name}"),
            Self::AddElements { set, elements, .. } => {
                write!(
                    out,
                    "add {} entries to {set}{}",
                    elements.len(),
                    owners(elements)
                )
            }
            Self::RemoveElements { set, elements, .. } => {
                let (count, owners) = (elements.len(), owners(elements));
                write!(out, "remove {count} entries from {set}{owners}")
            }
            Self::AddChain { chain, .. } => write!(out, "add chain {chain}"),
            Self::RemoveChain(name) => write!(out, "remove chain {name}"),
            Self::AddRule { chain, .. } => write!(out, "add a rule to chain {chain}"),
            Self::RemoveRule { chain, handle } => {
                write!(out, "remove rule {handle} from chain {chain}")
            }
        }
    }
}

/// The rules that elements belong to, at most three by name.
fn owners(elements: &[KeyedElement]) -> String {
    let mut names: Vec<&str> = elements
        .iter()
        .filter_map(|keyed| match &keyed.element {
            Element::Counter(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(", of {}", names.join(", ")),
        (false, more) => format!(", of {} and {more} more", names.join(", ")),
    }
}
