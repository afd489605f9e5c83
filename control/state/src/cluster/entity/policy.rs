//! Site policies: rules of the site beside the contract's own table.

use std::collections::BTreeSet;

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Most policies of a cluster; a further one is refused.
pub const POLICIES_MAX: usize = 16;

/// A policy, as it was read and compiled before it came here; to the state its source is text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The key: 1 to 63 of a-z, 0-9 and -.
    pub name: String,
    /// Source in Rego.
    pub source: String,
    /// Paths of the methods that it judges. They are kept beside the source so that a program
    /// that cannot compile it knows which calls it must not let through.
    pub methods: BTreeSet<String>,
    /// Number of times that the policy was set, from 1.
    pub generation: u64,
    /// Login of the last editor.
    pub updated_by: String,
    /// Time of the last change.
    pub updated_at: Timestamp,
}
