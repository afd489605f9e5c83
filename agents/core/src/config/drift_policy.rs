//! The policy for changes that somebody made on the switch by hand.

use serde::Deserialize;

/// Policy for a change that neither control nor the agent made. It is reported in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftPolicy {
    /// The agent takes it back.
    #[default]
    Heal,
    /// It stays until somebody takes it back, control changes the object, or the agent starts
    /// again. A change that would let tenants meet is taken back all the same
    /// ([`agents_nos::keeps_tenants_apart`]).
    Report,
}
