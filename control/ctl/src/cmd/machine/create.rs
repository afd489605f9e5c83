//! `metalmesh machine create`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use proto_public::api::v2::{
    DnsServer, FirewallRules, FirewallSpec, MachineAllocationNetwork, MachineAllocationType,
    MachineServiceCreateRequest, NtpServer,
};
use tonic::Request;
use tonic::metadata::MetadataValue;

use super::WaitArgs;
use super::wait::{self, WaitGoal};
use crate::app::App;
use crate::cmd::given;
use crate::files;
use crate::text::labels;

#[derive(Debug, Args)]
pub(crate) struct MachineCreateArgs {
    /// Name of the allocation.
    #[arg(long)]
    name: String,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Host name of the machine.
    #[arg(long)]
    hostname: Option<String>,
    /// Partition of the machine.
    #[arg(long, required_unless_present = "machine")]
    partition: Option<String>,
    /// Size of the machine.
    #[arg(long, required_unless_present = "machine")]
    size: Option<String>,
    /// Allocate the machine with this id, as an administrator.
    #[arg(long, value_name = "UUID", conflicts_with_all = ["partition", "size"])]
    machine: Option<String>,
    /// Image to install.
    #[arg(long)]
    image: String,
    /// Filesystem layout; by default the one that fits size and image.
    #[arg(long, value_name = "LAYOUT")]
    filesystem_layout: Option<String>,
    /// Network of the machine, with allocated addresses after a colon: NETWORK[:IP,IP]. Repeatable.
    #[arg(long = "network", value_name = "NETWORK[:IP]", required = true)]
    networks: Vec<String>,
    /// File with a public SSH key. Repeatable.
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// File with user data for Ignition or cloud-init, which the image must have; at most 24 KiB.
    #[arg(long, value_name = "FILE")]
    userdata: Option<PathBuf>,
    /// Set a label. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Placement label: machines with the same ones are spread over racks. Repeatable.
    #[arg(long = "placement-label", value_name = "NAME=VALUE")]
    placement_labels: Vec<String>,
    /// Address of a DNS server, instead of the partition's. Repeatable.
    #[arg(long = "dns-server", value_name = "IP")]
    dns_servers: Vec<String>,
    /// Address or name of a time server, instead of the partition's. Repeatable.
    #[arg(long = "ntp-server", value_name = "SERVER")]
    ntp_servers: Vec<String>,
    /// Allocate a firewall, which routes between its networks.
    #[arg(long)]
    firewall: bool,
    /// File with the firewall's rules, YAML or JSON: lists `egress` and `ingress` of rules with
    /// `protocol`, `ports`, `to`, `from` and `comment`.
    #[arg(long, value_name = "FILE", requires = "firewall")]
    firewall_rules: Option<PathBuf>,
    /// Idempotency key: a repeated call with the same key returns the same machine. Random by
    /// default.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
}

pub(super) async fn make(app: &App, create: MachineCreateArgs) -> Result<()> {
    let wait = create.wait;
    let key = create
        .idempotency_key
        .clone()
        .unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let keys = create
        .ssh_keys
        .iter()
        .map(|path| Ok(files::read(path)?.trim().to_owned()));
    let userdata = create.userdata.as_deref().map(files::read).transpose()?;
    let rules = create.firewall_rules.as_deref().map(rules).transpose()?;
    let message = MachineServiceCreateRequest {
        project: app.need_project().await?,
        uuid: create.machine,
        name: create.name,
        description: create.description,
        hostname: create.hostname,
        partition: create.partition,
        size: create.size,
        image: create.image,
        filesystem_layout: create.filesystem_layout,
        ssh_public_keys: keys.collect::<Result<_>>()?,
        userdata: userdata.map(encode),
        labels: labels(&create.labels)?,
        networks: create.networks.iter().map(|flag| network(flag)).collect(),
        placement_labels: labels(&create.placement_labels)?,
        dns_servers: create.dns_servers.into_iter().map(dns).collect(),
        ntp_servers: create.ntp_servers.into_iter().map(ntp).collect(),
        allocation_type: match create.firewall {
            true => MachineAllocationType::Firewall.into(),
            false => MachineAllocationType::Machine.into(),
        },
        firewall_spec: rules.map(|rules| FirewallSpec {
            firewall_rules: Some(rules),
        }),
    };
    let mut request = Request::new(message);
    let value = MetadataValue::try_from(key.as_str())
        .context("the idempotency key has characters that a header cannot carry")?;
    request.metadata_mut().insert("idempotency-key", value);
    let machine = given(
        app.client
            .machines()
            .create(request)
            .await?
            .into_inner()
            .machine,
    )?;
    if !wait.wait || app.is_dry() {
        return app.output.one(&machine);
    }
    let machine = wait::until(app, &machine.uuid, WaitGoal::Installed, wait.timeout).await?;
    app.output.one(&machine)
}

fn encode(userdata: String) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(userdata)
}

/// Parses `NETWORK` or `NETWORK:IP,IP`.
fn network(flag: &str) -> MachineAllocationNetwork {
    let (network, ips) = flag.split_once(':').unwrap_or((flag, ""));
    let ips = ips
        .split(',')
        .filter(|ip| !ip.is_empty())
        .map(str::to_owned)
        .collect();
    MachineAllocationNetwork {
        network: network.to_owned(),
        ips,
    }
}

fn dns(ip: String) -> DnsServer {
    DnsServer { ip }
}

fn ntp(address: String) -> NtpServer {
    NtpServer { address }
}

/// Reads a firewall's rules from a file.
fn rules(path: &Path) -> Result<FirewallRules> {
    parse_rules(&files::read(path)?).with_context(|| format!("{}", path.display()))
}

fn parse_rules(text: &str) -> Result<FirewallRules> {
    let value = files::yaml(text)?;
    let message = proto_public::message("metalstack.api.v2.FirewallRules");
    let message = message.context("unknown message type")?;
    let rules = proto_public::json::parse_strict(&message, value.to_string().as_bytes())?;
    Ok(rules.transcode_to()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_a_firewall() {
        let text = "egress:\n- protocol: IP_PROTOCOL_TCP\n  ports: [443]\n  to: [0.0.0.0/0]\n\
                    ingress:\n- protocol: IP_PROTOCOL_UDP\n  ports: [53]\n  from: [10.0.0.0/8]\n";
        let rules = parse_rules(text).unwrap();
        assert_eq!(rules.egress[0].ports, [443]);
        assert_eq!(rules.ingress[0].from, ["10.0.0.0/8"]);
        let error = parse_rules("egress:\n- port: 443\n").unwrap_err();
        assert!(error.to_string().contains("port"), "{error:#}");
    }
}
