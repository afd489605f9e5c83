//! The states of a claim as one transition table, and what the machine of its host means for it.
//!
//! Nothing else sets a claim's state: `enter` looks the event up in the table, so that a transition
//! that is not listed cannot happen.

mod sight;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use sight::{HostSight, event_of};
pub(crate) use table::{ClaimEvent, next};

use proto_types::Timestamp;

use crate::claim::entity::Claim;

/// Takes a claim into the state that an event leads to. `false` means that the table does not list
/// the event, and that nothing changed.
pub(crate) fn enter(claim: &mut Claim, event: ClaimEvent, now: Timestamp) -> bool {
    let Some(state) = next(claim.state, event) else {
        return false;
    };
    claim.state = state;
    claim.since = now;
    true
}
