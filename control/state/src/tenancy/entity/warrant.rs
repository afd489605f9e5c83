//! The standing over the platform on which tokens and invites rest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Logins in one [`Warrant`]. Each token that is made for another member adds one.
pub const WARRANT_LOGINS_MAX: usize = 16;

/// The standing on which a token's rights over the platform rest: its admin, infra and machine
/// roles, and the methods of these kinds that it lists. Decisions look at it with each call, so
/// that these rights end with the membership that they came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warrant {
    /// On the roles that these logins have in the provider's tenant; the weakest of them counts.
    Members(BTreeSet<String>),
    /// On access to a control node: control made it for its operator. It ends by revocation and
    /// by its expiry alone.
    Operator,
}
