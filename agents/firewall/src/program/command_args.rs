use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::file_args::{FileArgs, StateArgs};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Configuration, YAML.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/firewall-controller/config.yaml"
    )]
    pub(super) config: PathBuf,
    #[command(flatten)]
    pub(super) state: StateArgs,
    /// Where the rules are written as text, for others.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/nftables/firewall-controller.v4"
    )]
    pub(super) rules_file: PathBuf,
    /// Do not write the rules as text.
    #[arg(long)]
    pub(super) no_rules_file: bool,
    /// Tell Prometheus what the firewall counts, at http://ADDRESS/metrics. There is no
    /// authentication: loopback, or an address of the management network.
    #[arg(long, value_name = "ADDRESS", env = "METALMESH_METRICS")]
    pub(super) metrics: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    #[command(flatten)]
    pub(super) file: FileArgs,
    /// Print what would change in the kernel, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Go back to the last good rules unless `confirm` comes within this time: 30s, 2m.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(super) confirm_within: Option<Duration>,
    /// Go back to the last good rules unless this address accepts a TCP connection. May be repeated.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) probe: Vec<SocketAddr>,
    /// Write the rules as text, for others.
    #[arg(long, value_name = "FILE")]
    pub(super) rules_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) file: FileArgs,
    /// Source address.
    #[arg(long)]
    pub(super) from: IpAddr,
    /// Destination address.
    #[arg(long)]
    pub(super) to: IpAddr,
    /// Destination port, or type of ICMP.
    #[arg(long, default_value_t = 0)]
    pub(super) port: u16,
    /// tcp, udp, sctp, icmp, or the number of an IP protocol.
    #[arg(long, default_value = "tcp")]
    pub(super) protocol: String,
    /// Interface that the packet comes in by; derived from its source by default.
    #[arg(long = "in", value_name = "INTERFACE")]
    pub(super) input: Option<String>,
    /// Interface that the packet leaves by; derived from its destination by default.
    #[arg(long = "out", value_name = "INTERFACE")]
    pub(super) leaving: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let count: u64 = number
        .parse()
        .map_err(|_| format!("{text:?} is not a time like 30s or 2m"))?;
    count
        .checked_mul(unit)
        .filter(|seconds| (1..=3600).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "use 1s to 60m".to_owned())
}
