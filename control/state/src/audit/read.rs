//! Questions about the audit trail.

use crate::levels::{CHAIN_LEVEL, feature_level};
use crate::tables::Tables;

/// Whether records are chained, and calls recorded with their changes: once every control node
/// has said that it knows that.
pub fn audit_is_chained(tables: &Tables) -> bool {
    feature_level(tables) >= CHAIN_LEVEL
}
