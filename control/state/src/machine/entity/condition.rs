//! Availability of a machine to users.

use serde::{Deserialize, Serialize};

/// Whether users may have the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Yes.
    #[default]
    Available,
    /// Only by its id.
    Tainted,
    /// No, and nothing may be done to it.
    Locked,
}

/// Whether users may have the machine, who says so and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Whether users may have it.
    pub state: Availability,
    /// Why.
    pub description: String,
    /// Who says so.
    pub issuer: String,
}
