//! The replicated state of metalmesh as a pure machine: commands in, replies and changes out.
//!
//! ```text
//! apply(&mut Tables, &Command) -> Outcome { result, changes, revision }
//! ```
//!
//! No clock, no randomness, no I/O: the proposer puts the time, the ids and the hashes of secrets
//! into a command, so that every replica computes the same.
//!
//! Rooms: `machine` (phases, allocations, BMC orders, boots), `switch`, `network` (addresses, pools
//! of numbers), `catalog` (partitions, sizes, images, layouts, reservations), `tenancy` (tenants,
//! projects, invites, quotas), `identity` (users, tokens, tickets, certificates, the authority),
//! `audit`, `firewall` (sets of rules, active and standby), `lease` (owners and lessees of machines),
//! `allocation` (machines held by class and traits), `pool` (hosts that projects claim, and policies),
//! `rollout` (releases of agents in waves), `claim`, `node` (the part of Ironic's nodes that a machine does not have), `cluster` (control
//! nodes, clock, settings, policies, components). In each: `entity` (rows), `command`, `read`,
//! `apply`. [`desired`] derives the desired state of agents, [`query`] answers readers, `overlay`
//! compares, forecasts and traces the switches. The root holds the parts that all rooms share: tables,
//! bounds, levels, dispatch, the tick.
//!
//! Invariants:
//! - an error leaves the tables as they were, revision included;
//! - `revision` counts the commands that changed something; it serves as the generation of every
//!   desired state that is derived from the tables;
//! - observations (heartbeats, BMC reports) do not touch `meta.updated_at`, so that they do not
//!   break an optimistic lock;
//! - a machine whose disks may hold data (`dirty`), or that its node withholds, is never on offer;
//! - `entity` and `read` do not depend on `apply`, and `apply` does not depend on `desired`.
//!
//! Start at [`apply`] and [`Op`].

mod allocation;
mod audit;
mod blob;
pub mod bounds;
mod catalog;
mod claim;
mod clip_reports;
mod cluster;
mod command;
pub mod desired;
mod dispatch;
mod fields;
mod firewall;
mod holdings;
mod identity;
mod lease;
mod levels;
mod machine;
mod meta;
mod network;
mod node;
mod op;
mod overlay;
mod pool;
pub mod query;
mod references;
mod reply;
mod rollout;
mod switch;
mod tables;
mod tenancy;
mod tick;

pub use allocation::command::*;
pub use allocation::entity::*;
pub use audit::command::*;
pub use audit::entity::*;
pub use bounds::POLICY_BYTES_MAX;
pub use catalog::command::*;
pub use catalog::entity::*;
pub use catalog::read::{ImageVersion, newest_image, parse_image_id};
pub use claim::command::*;
pub use claim::entity::*;
pub use clip_reports::{clip_agent_report, clip_firewall_report, clip_reports, clip_switch_report};
pub use cluster::command::*;
pub use cluster::entity::*;
pub use command::Command;
pub use desired as life;
pub use dispatch::{Outcome, apply, attempt};
pub use firewall::command::*;
pub use firewall::entity::*;
pub use identity::apply::token::user_of as user_of_component;
pub use identity::command::*;
pub use identity::entity::*;
pub use lease::command::*;
pub use lease::entity::*;
pub use levels::*;
pub use machine::apply::install::INSTALL_ATTEMPTS_MAX;
pub use machine::apply::liveliness::DEAD_AFTER_MS;
pub use machine::command::*;
pub use machine::entity::*;
pub use machine::phase::{STEP_ATTEMPTS_MAX, phase_diagram};
pub use machine::read::{
    BMC_ONLY_MAX, MAC_MACHINES_MAX, Strangers, match_size, matching_sizes, strangers,
};
pub use meta::*;
pub use network::command::*;
pub use network::entity::*;
pub use node::command::*;
pub use node::entity::*;
pub use op::{
    CLAIMS, FEATURE_LEVEL, FIREWALL_RULES, INVITATIONS, LEASES, NODES, Op, ROLLOUTS, SWITCH_HEALTH,
};
pub use overlay::*;
pub use pool::command::*;
pub use pool::entity::*;
pub use proto_errors::{Error as StateError, ErrorCode, ErrorKind};
pub use proto_types::{AuditHash, AuditPhase};
pub use reply::{ApplyResult, CheckResult, Reply};
pub use rollout::apply::due_rollout;
pub use rollout::command::*;
pub use rollout::entity::*;
pub use rollout::judged::{AgentStanding, JudgedAgent};
pub use switch::command::*;
pub use switch::entity::*;
pub use tables::{Change, CodecError, Entity, Kind, Record, Slot, Tables};
pub use tenancy::command::*;
pub use tenancy::entity::*;
pub use tick::tick_may_change;
