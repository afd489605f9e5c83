//! The firewall agent: typed rules from their sources, compiled into one nftables table.
//!
//! [`config`] reads the configuration file of MEP-16, and [`mod@source`] follows the sources that it
//! names. [`admit`] turns each object of a source into
//! typed rules ([`rule`]), or into a problem of that object. [`compile`] is the one compiler that
//! all controllers feed; its result, [`model`], is the table as the kernel should hold it.
//! [`netlink`] reads the table that the kernel holds, and [`plan`] computes the changes between
//! both, which the kernel takes as one transaction. [`interpret`] follows a packet through a model.
//!
//! [`dns`] learns the addresses of names in rules, and [`drops`] reads what the kernel reports.
//! [`routes`] keeps the firewall's place among those of its project. [`update`] replaces the program
//! itself.
//!
//! Invariants:
//! - Only the table [`model::TABLE`] is ever changed, and never as text: what a tenant writes is
//!   parsed into addresses, ports and numbers, or refused (`admit`).
//! - A packet that no rule accepts is dropped by the last rule of a chain that is created once and
//!   never flushed (`compile`, `plan`).
//! - A change is one transaction of the kernel, made for the generation of rules that was read
//!   before; a counter lives as long as its rule has its name (`plan`, `netlink`).
//! - An object that is wrong changes nothing but its own rules; a network whose object is wrong is closed
//!   (`admit`).
//! - Rules stay in the kernel when the agent ends, and a boot without a usable configuration applies
//!   the last good one, or drops everything (`run`).
//! - Packets are forwarded once the rules are in the kernel, and not before (`run`).
//! - New rules that their probe refutes, or that nobody confirms, are replaced by the last good ones
//!   (`trial`).
//! - Another program runs only with a signature that the configuration file trusts, and goes again
//!   unless it confirms itself (`update`).

pub mod admit;
mod agent_files;
mod audit;
pub mod candidate;
pub mod compile;
pub mod config;
pub mod dns;
pub mod drops;
pub mod explain;
mod file_stamp;
mod forwarding;
pub mod fragment_room;
pub mod interpret;
mod loaded;
pub mod model;
pub mod monitor;
mod monitor_reports;
pub mod netlink;
mod pause;
pub mod plan;
pub mod program;
mod readiness;
pub mod render;
pub mod routes;
pub mod rule;
pub mod run;
mod run_end;
mod services;
pub mod source;
pub mod state;
pub mod trial;
pub mod update;
pub mod view;
