//! What `./dev bench` runs. `store`: three nodes of ours and three of etcd side by side.
//!
//! `store` starts the clusters as processes of their own, gives each the same work in turn
//! (`load`, `fanout`, `failover`) and reports medians and ratios (`report`). `node` is one node of
//! ours: the product's store and transport under a key-value service (`service`). `inventory`
//! measures the product's own state and API with many machines, `authz` one decision about a call,
//! `apply` every command with its largest input.
//!
//! `api` is the product beside Ironic, `link` the agents' sessions beside tonic, `strangers` a
//! tenant's calls beside floods of strangers, `switch` the ports of switches, from the call to the
//! leaves, `tenancy` Ironic's own API beside Ironic, with policy and claims, `upgrade` a rolling
//! upgrade under writers; see the modules.
//!
//! Invariants: nothing is set that the product does not set; both systems are asked by the same
//! client; every process ends with the bench, however that ends.

mod api;
mod apply;
mod authz;
mod callers;
mod certs;
mod client;
mod cluster;
mod disk;
mod failover;
mod fanout;
mod inventory;
mod link;
mod load;
mod machine;
mod node;
mod place;
mod process;
mod procfs;
mod report;
mod sample;
mod service;
mod store;
mod strangers;
mod switch;
mod table;
mod tenancy;
mod upgrade;
mod wire;

use std::process::ExitCode;

use anyhow::{Context, Result};
use base_runtime::exit_code;
use base_runtime::shutdown::StopSignals;
use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// The product's: what is measured in this process is its code.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Debug, Parser)]
#[command(about = "Measure the product beside its peers.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The store beside etcd
    Store(store::StoreArgs),
    /// Measure the decision who may call what
    Authz(authz::AuthzArgs),
    /// The agents' link beside tonic
    Link(link::LinkArgs),
    /// Be the server of a link
    #[command(hide = true)]
    LinkServer(link::ServerArgs),
    /// The API beside Ironic
    Api(api::ApiArgs),
    /// Each command with the largest input that the state takes
    Apply(apply::ApplyArgs),
    /// A tenant's calls beside strangers
    Strangers(strangers::StrangersArgs),
    /// Ports of switches, from the call to the leaves
    Switch(switch::SwitchArgs),
    /// Ironic's API beside Ironic, its policy, and claims among many hosts
    Tenancy(tenancy::TenancyArgs),
    /// A rolling upgrade of three nodes while clients write
    Upgrade(upgrade::UpgradeArgs),
    /// Fill a data directory of the product
    #[command(hide = true)]
    Fill(api::seed::FillArgs),
    /// Fill a data directory with a rack whose agents have joined
    #[command(hide = true)]
    SwitchFill(switch::FillArgs),
    /// Be one node of ours
    #[command(hide = true)]
    Node(node::NodeArgs),
    /// Be a store of many machines
    #[command(hide = true)]
    Inventory(inventory::InventoryArgs),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("warn,proto_link=error"))
        .with_writer(std::io::stderr)
        .init();
    exit_code(start(Cli::parse().command))
}

fn start(command: Command) -> Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("TLS was set up twice"))?;
    let runtime = proto_link::runtime()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let mut signals = StopSignals::listen()?;
        // Whatever is dropped here takes its processes and directories along.
        tokio::select! {
            done = run(command) => done,
            signal = signals.recv() => anyhow::bail!("{signal}; everything was taken away"),
        }
    })
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Store(args) => store::run(args).await,
        Command::Authz(args) => authz::run(&args),
        Command::Link(args) => link::run(args).await,
        Command::LinkServer(args) => link::serve(args).await,
        Command::Api(args) => api::run(args).await,
        Command::Apply(args) => apply::run(&args),
        Command::Strangers(args) => strangers::run(args).await,
        Command::Switch(args) => switch::run(args).await,
        Command::Tenancy(args) => tenancy::run(args).await,
        Command::Upgrade(args) => upgrade::run(args).await,
        Command::SwitchFill(args) => switch::fill(args).await,
        Command::Fill(args) => api::seed::run(args).await,
        Command::Node(args) => node::run(args).await,
        Command::Inventory(args) => inventory::run(args).await,
    }
}
