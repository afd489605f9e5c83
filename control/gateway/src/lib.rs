//! Agent sessions: sends desired state, takes observed state.
//!
//! Serves every service of the mesh over the replicated store. Desired state is level-triggered: a
//! stream reads the state, sends the whole of its desired state, and sends it again when it
//! differs. One task reads all changes and wakes the streams that they concern ([`wakes`]). Only
//! changes are proposed: heartbeats, and reports without news, stay in memory.
//!
//! Invariants:
//! - the link checks the kind of caller by the contract's table, and [`access`] alone checks the
//!   object: an agent speaks for its own switch, partition or machine, an installed machine for
//!   itself and only while its project has it;
//! - each message of desired state carries (term, generation); a node that lost leadership ends its
//!   streams;
//! - a refusal carries its code of the error catalogue, its cause goes to the log;
//! - audited calls leave a record, but the refusal of a caller without a certificate never makes
//!   control write;
//! - calls and requests are bounded for each identity and network (`bounds`).
//!
//! Entry point: [`Gateway::bind`].

mod access;
mod audit;
mod bmc;
mod boot;
mod bounds;
mod convert;
mod desired;
mod desired_size;
mod enrol;
mod error;
mod firewall;
mod firewall_numbers;
mod install;
mod leases;
mod machine;
mod node;
mod parts;
mod phone_home;
mod port_filter;
mod serve;
mod status;
mod switch;
mod switch_health;
mod switch_intents;
mod update;
mod wakes;

pub use error::GatewayError;
pub use serve::{Gateway, GatewayConfig};
