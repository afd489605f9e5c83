//! The state machine from outside: commands in, tables and replies out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests stop at the first surprise"
)]

mod agent_rollout;
mod agents;
mod allocation;
mod astray;
mod audit;
mod bmc_claims;
mod bmc_rollout;
mod bmc_streams;
mod boots;
mod bounds;
mod budgets;
mod ca;
mod cables;
mod claims;
mod clock;
mod contract_rules;
mod cooldown;
mod evpn;
mod firewall_carry;
mod firewall_contents;
mod firewall_desired;
mod firewall_faults;
mod firewall_guests;
mod firewall_release;
mod firewall_replace;
mod firewall_revisions;
mod firewall_routes;
mod firewall_rules;
mod firewall_shares;
mod firewall_standby;
mod held_segments;
mod identity;
mod installation;
mod leases;
mod life;
mod management_addresses;
mod names;
mod networking;
mod networks;
mod node_allocations;
mod nodes;
mod nonce;
mod overlay;
mod placement;
mod policy;
mod ports;
mod properties;
mod quota;
mod reach;
mod relayed_ports;
mod repeats;
mod restored;
mod restored_disks;
mod revival;
mod rivals;
mod rollout;
mod scale;
mod shared_networks;
mod storage;
mod strangers;
mod switches;
mod tenancy;
mod tenant_ports;
mod traces;
mod untrue_reports;
mod users;
mod vpn;
mod watch;
mod wipes;
mod world;
