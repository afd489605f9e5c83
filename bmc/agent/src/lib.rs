//! `metalmesh-bmc`: finds the BMCs of one partition, reads them, and executes control's orders.
//!
//! BMCs come from a static list and from pixie's leases, which control passes on. Each is read by
//! Redfish or IPMI once per interval. Orders name a machine by its UUID; the agent finds its BMC
//! from the readings. Credentials stay in a file of this agent.
//!
//! Invariants:
//! - Each machine has one running order at a time, in control's sequence, and all machines together
//!   at most [`orders::RUNNING_MAX`]. An order that left control's newest list is not started.
//! - A reset or power cycle is executed at most once: its start and its end are on disk before the
//!   next step, and one that a restart interrupted is reported, not repeated. Only idempotent orders
//!   are executed again after a restart.
//! - An order of an earlier binding of its machine than this agent has had an order of is refused, also
//!   after a restart: the highest binding is on disk before an order of it begins.
//! - An end is reported until control acknowledges it.
//! - Each order ends by its deadline, with the machine's power state or a reason that names the BMC.
//! - No argument, log, error or message contains a password or a [`Nonce`]; control gets the nonce's
//!   digest.
//!
//! Entry point: [`BmcAgent`].

mod action;
mod agent;
mod bindings;
pub mod config;
mod discovery;
pub mod driver;
mod fleet;
mod journal;
mod look;
mod mesh;
mod nonce;
pub mod orders;
mod outbox;
mod reach;
mod real;

pub use agent::BmcAgent;
pub use config::Config;
pub use nonce::Nonce;
pub use reach::Reach;
