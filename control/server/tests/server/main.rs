//! metalmeshd from outside: the real program, killed, restarted, misconfigured, and driven by
//! the command line and by the published Python client.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests stop at the first surprise"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says why")]

mod agent;
mod apply;
mod backup;
mod ca;
mod cli;
mod cli_fabric;
mod cli_image;
mod cli_lease;
mod cli_switch;
mod cluster;
mod collector;
mod daemon;
mod doctor;
mod drain;
mod drills;
mod export;
mod five;
mod get;
mod go;
mod headscale;
mod identity;
mod ironic;
mod ironic_wire;
mod login;
mod metalctl;
mod metrics;
mod mixed;
mod node;
mod nodes;
mod policy;
mod published_agent;
mod python;
mod reconcile;
mod relayed_boot;
mod restored;
mod rolling;
mod rollout;
mod s3;
mod schedule;
mod scrape;
mod setup;
mod setup_files;
mod stories;
mod traces;
mod upgrade;
mod venv;
mod vpn;
mod wall_clock;
mod watch;
mod wire;
