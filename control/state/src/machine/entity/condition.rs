//! Availability of a machine to users.

use serde::{Deserialize, Serialize};

/// Availability of a machine for allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Anyone may allocate it.
    #[default]
    Available,
    /// It can be allocated by its id only.
    Tainted,
    /// It cannot be allocated, and control leaves it alone.
    Locked,
}

/// Availability of a machine, with its reason and issuer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// The availability.
    pub state: Availability,
    /// The reason; empty if available.
    pub description: String,
    /// The caller that set it; empty if nobody did.
    pub issuer: String,
}
