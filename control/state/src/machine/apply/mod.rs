//! Transitions of machines.

pub(crate) mod allocate;
pub(crate) mod allocate_networks;
pub(crate) mod bmc_claims;
pub(crate) mod boots;
pub(crate) mod candidates;
pub(crate) mod deadlines;
pub(crate) mod event_log;
pub(crate) mod events;
pub(crate) mod handover;
pub(crate) mod idempotency;
pub(crate) mod install;
pub(crate) mod lifecycle;
pub(crate) mod links;
pub(crate) mod liveliness;
pub(crate) mod machine;
pub(crate) mod nonce;
pub(crate) mod order_deadlines;
pub(crate) mod order_outcome;
pub(crate) mod orders;
pub(crate) mod reclaim;
pub(crate) mod register;
pub(crate) mod restored;
pub(crate) mod sizing;
pub(crate) mod strangers;
pub(crate) mod vpn;
pub(crate) mod wipe;
