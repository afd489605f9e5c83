//! The agent of one leaf, as `metalmesh-core` runs it, on a switch in memory: the host's kernel has
//! no VRFs. Program, allocator, runtime, session, reconciliation and reports are the agent's own;
//! only the back-end is not.

use std::path::PathBuf;
use std::process::ExitCode;

use agents_core::config::Config;
use agents_kit::{AgentArgs, AgentCommand, AgentKind};
use agents_nos::Nos as _;
use agents_nos::stub::Stub;
use clap::Parser;
use proto_wire_lldp::Frame;
use tokio_util::sync::CancellationToken;

/// How long the LLDP frames of the machines hold, seconds: longer than any run.
const TTL_S: u16 = u16::MAX;

#[derive(Debug, Parser)]
#[command(name = "bench-leaf", about = "The agent of a leaf in memory.")]
struct Cli {
    #[command(subcommand)]
    command: AgentCommand<Run>,
}

/// Keep a switch in memory in the state that control desires.
#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    agent: AgentArgs,
    /// Configuration of the switch, TOML
    #[arg(long)]
    config: PathBuf,
    /// Front-panel ports, swp0 and on; machine N is on port swpN
    #[arg(long)]
    ports: u16,
    /// The NIC of each machine that is cabled to this leaf
    #[arg(long)]
    side: u8,
}

impl AsRef<AgentArgs> for Run {
    fn as_ref(&self) -> &AgentArgs {
        &self.agent
    }
}

fn main() -> ExitCode {
    agents_kit::main(Cli::parse().command, run)
}

async fn run(run: Run, stop: CancellationToken) -> anyhow::Result<()> {
    let config = Config::load(&run.config)?;
    let switch = switch(run.ports, run.side)?;
    let agent = tokio::select! {
        agent = run.agent.start(AgentKind::Core) => agent?,
        () = stop.cancelled() => return Ok(()),
    };
    let _metrics = run
        .agent
        .serve_metrics(&agent, AgentKind::Core, None)
        .await?;
    agents_core::run(agent.clone(), config, switch, stop).await;
    agent.close().await;
    Ok(())
}

/// Ports that are up and in quarantine, with a machine's NIC on each.
fn switch(ports: u16, side: u8) -> anyhow::Result<Stub> {
    let port = |number: u16| {
        let [high, low] = number.to_be_bytes();
        (format!("swp{number}"), [2, 0xfd, side, 0, high, low])
    };
    let links: Vec<_> = (0..ports).map(port).collect();
    let switch = Stub::with_links(links.iter().map(|(name, mac)| (name.as_str(), *mac)))?;
    let neighbours = switch.neighbours().unwrap_or_default();
    let now = tokio::time::Instant::now();
    for number in 0..ports {
        let [high, low] = number.to_be_bytes();
        let source = [2, side, 0, 0, high, low];
        let mac = source.map(|byte| format!("{byte:02x}")).join(":");
        let frame = Frame {
            source,
            chassis_id: format!("machine-{number}"),
            port_id: mac,
            system_name: "machine".into(),
            system_description: "the bench".into(),
            ttl_s: TTL_S,
        };
        neighbours.heard(&format!("swp{number}"), frame, now);
    }
    Ok(switch)
}
