//! `metalmesh-bmc`: finds the BMCs of one partition, reads them, and carries out control's orders.
//!
//! BMCs come from a static list and from pixie's leases, which control hands on. Each is read by
//! Redfish or IPMI once an interval. Orders name a machine by its UUID; the agent knows from its
//! readings which BMC that is. Credentials stay in a file of this agent.
//!
//! Invariants:
//! - one order at a time for each machine, in control's sequence, and [`orders::RUNNING_MAX`] in
//!   all; what is not in control's newest list and has not begun is not begun;
//! - an order id is carried out at most once: its start and its end are on disk before the next
//!   step, and a reset that a restart interrupted is reported, not repeated;
//! - an end is told until control acknowledges it;
//! - each order ends by its deadline, with what the machine's power then is or a reason that names
//!   the BMC;
//! - passwords are in no argument, log, error or message, nor is a [`Nonce`]: control learns its
//!   digest.
//!
//! Entry point: [`BmcAgent`].

mod agent;
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
mod real;

pub use agent::BmcAgent;
pub use config::Config;
pub use nonce::Nonce;
