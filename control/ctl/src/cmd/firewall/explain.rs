//! `metalmesh firewall explain`.

use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    FirewallExplanation, FirewallRulesServiceGetExplanationRequest,
    FirewallRulesServiceGetExplanationResponse,
};

use super::service::RulesService;
use crate::app::App;
use crate::cmd::given;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The firewall, by id or name.
    firewall: String,
    /// Source address.
    #[arg(long)]
    from: IpAddr,
    /// Destination address.
    #[arg(long)]
    to: IpAddr,
    /// Destination port, or type of ICMP.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// tcp, udp, sctp, icmp or a number.
    #[arg(long, default_value = "tcp")]
    protocol: String,
    /// Ask as an administrator, about a firewall of any project.
    #[arg(long)]
    operator: bool,
}

pub(crate) async fn run(app: &App, args: ExplainArgs) -> Result<()> {
    ensure!(
        args.from.is_ipv4() == args.to.is_ipv4(),
        "--from and --to have different address families; use IPv4 for both, or IPv6"
    );
    let protocol = number(&args.protocol, args.from.is_ipv4())?;
    let firewall = app.machine_id(&args.firewall).await?;
    let (from, to) = (args.from.to_string(), args.to.to_string());
    let (protocol, port) = (u32::from(protocol), u32::from(args.port));
    let service = RulesService::of(app, args.operator).await?;
    let request = FirewallRulesServiceGetExplanationRequest {
        project: service.project.clone(),
        firewall,
        from,
        to,
        protocol,
        port,
    };
    let answer: FirewallRulesServiceGetExplanationResponse =
        service.call("GetExplanation", &request).await?;
    let found = given(answer.explanation)?;
    let name = "metalmesh.admin.v1.FirewallExplanation";
    app.output.message(name, &found, print)
}

fn print(found: &FirewallExplanation) {
    let verdict = match found.accepted {
        _ if found.decided_by_input => "input",
        true => "accept",
        false => "drop",
    };
    let side = |network: &String| match network.is_empty() {
        true => "no network".to_owned(),
        false => network.clone(),
    };
    let (input, output) = (side(&found.input), side(&found.output));
    outln!("{verdict}: {} ({input} to {output})", found.reason);
    if let Some(rules) = &found.rules {
        outln!("written by {} as revision {}", rules.author, rules.revision);
    }
    for object in &found.undecided {
        outln!("{object} may accept it too: only the firewall knows the addresses of its names");
    }
}

fn number(text: &str, is_ipv4: bool) -> Result<u8> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "tcp" => 6,
        "udp" => 17,
        "sctp" => 132,
        "icmp" if is_ipv4 => 1,
        "icmp" => 58,
        other => other
            .parse()
            .context("--protocol is tcp, udp, sctp, icmp or a number")?,
    })
}
