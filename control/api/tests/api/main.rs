//! The API from outside, over real TCP on loopback: an in-process node with a store in a
//! temporary directory. What hardware would say is put into the state directly.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests stop at the first surprise"
)]

mod access;
mod addresses;
mod audit;
mod bound_tokens;
mod callers;
mod catalogue;
mod claiming;
mod claims;
mod claims_access;
mod claims_hosts;
mod claims_reach;
mod contention;
mod coverage;
mod differences;
mod fabric;
mod firewall_access;
mod firewall_guests;
mod firewall_names;
mod firewall_questions;
mod firewall_release;
mod firewall_replace;
mod firewall_rules;
mod health;
mod image_digests;
mod image_fetches;
mod image_site;
mod image_store;
mod infra;
mod invites;
mod ipam;
mod layouts;
mod lease_parties;
mod leases;
mod lists;
mod login;
mod machine_rules;
mod machines;
mod methods;
mod networks;
mod node;
mod node_allocations;
mod owners;
mod policy;
mod protocols;
mod published;
mod published_agents;
mod published_bmc;
mod published_nonce;
mod published_restored;
mod published_switch;
mod quota;
mod raw_http;
mod rollout;
mod scenario;
mod shown_fields;
mod shown_machines;
mod sizes;
mod spelling;
mod standing;
mod strangers;
mod tenancy_change;
mod token_roles;
mod trial;
mod unchanged;
mod validation;
mod watch;
mod watch_limits;
mod watch_tenancy;
mod watching;
