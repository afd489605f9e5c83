//! Agent sessions: desired state out, observed state in.
//!
//! Serves every service of the mesh over the replicated store. Desired state is level-triggered:
//! a stream looks at the state, sends the whole of it, and sends again when its content differs.
//! One task reads all changes and wakes the streams that they concern ([`wakes`]).
//! Reports that say nothing new and heartbeats stay in memory; only changes are proposed.
//!
//! Invariants:
//! - the kind of caller is checked by the link from the contract's table, the object here and
//!   only in [`access`]: an agent speaks for its own switch, partition or machine, an installed
//!   machine for itself and only while its project has it;
//! - each message of desired state carries (term, generation); a node that lost the lead ends its
//!   streams;
//! - a refusal carries the number of the error catalogue, causes go to the log;
//! - calls that the contract wants audited leave a record, but nobody without a certificate can
//!   make control write by being refused.
//!
//! Entry point: [`Gateway::bind`].

mod access;
mod audit;
mod bmc;
mod boot;
mod bounds;
mod convert;
mod desired;
mod enrol;
mod error;
mod install;
mod leases;
mod machine;
mod node;
mod parts;
mod phone_home;
mod serve;
mod status;
mod switch;
mod switch_intents;
mod wakes;

pub use error::GatewayError;
pub use serve::{Gateway, GatewayConfig};
