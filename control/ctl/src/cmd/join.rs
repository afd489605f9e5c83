//! `metalmesh join`: one-time tickets with which agents get their identity.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use proto_public::metalmesh::admin::v1::{
    AgentKind, JoinServiceCreateRequest, JoinServiceListRequest, JoinServiceRevokeRequest,
    JoinTicket,
};

use super::given;
use crate::app::App;
use crate::files;
use crate::output::to_json;

#[derive(Debug, Subcommand)]
pub(crate) enum JoinCommand {
    /// Create a ticket for one agent, bound to its key or to its host's TPM.
    Create(JoinCreateArgs),
    /// List tickets.
    #[command(visible_alias = "list")]
    Ls,
    /// Revoke a ticket; an agent whose last join used it is revoked too.
    #[command(visible_alias = "rm")]
    Revoke {
        /// Id of the ticket.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct JoinCreateArgs {
    /// Kind of the agent.
    #[arg(ignore_case = true)]
    kind: AgentKindArg,
    /// Partition of the agent.
    #[arg(long)]
    partition: String,
    /// Name of the agent; for a core agent the id of its switch.
    #[arg(long)]
    id: String,
    /// SHA-256 of the agent's public key, as `metalmesh-core key` prints it (also metalmesh-bmc and
    /// metalmesh-pixie).
    #[arg(long, value_name = "HEX", required_unless_present_any = ["tpm_ek", "tpm_ek_cert"])]
    key_sha256: Option<String>,
    /// SHA-256 of the public endorsement key of the host's TPM 2.0, as `metalmesh-core tpm` prints
    /// it: the ticket works with that TPM alone.
    #[arg(long, value_name = "HEX", conflicts_with = "tpm_ek_cert")]
    tpm_ek: Option<String>,
    /// File with the TPM manufacturer's certificate of that key: DER or PEM, of an ECC P-256 key.
    #[arg(long, value_name = "FILE")]
    tpm_ek_cert: Option<PathBuf>,
    /// Let an agent join again whose identity was revoked.
    #[arg(long)]
    reenrol: bool,
    /// Validity of the ticket, in minutes.
    #[arg(long, default_value_t = 15)]
    minutes: u32,
    /// Write the ticket to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum AgentKindArg {
    Core,
    Bmc,
    Pixie,
}

pub(crate) async fn run(app: &App, command: JoinCommand) -> Result<()> {
    match command {
        JoinCommand::Create(create) => make(app, create).await,
        JoinCommand::Ls => {
            let answer = app
                .client
                .joins()
                .list(JoinServiceListRequest {})
                .await?
                .into_inner();
            app.output.list(&answer.tickets)
        }
        JoinCommand::Revoke { id } => {
            let answer = app
                .client
                .joins()
                .revoke(JoinServiceRevokeRequest { id })
                .await?;
            app.output.one(&given(answer.into_inner().ticket)?)
        }
    }
}

async fn make(app: &App, create: JoinCreateArgs) -> Result<()> {
    let kind = match create.kind {
        AgentKindArg::Core => AgentKind::Core,
        AgentKindArg::Bmc => AgentKind::Bmc,
        AgentKindArg::Pixie => AgentKind::Pixie,
    };
    let certificate = create.tpm_ek_cert.as_deref().map(files::read_bytes);
    let request = JoinServiceCreateRequest {
        kind: kind.into(),
        partition: create.partition,
        id: create.id,
        key_sha256: create.key_sha256.unwrap_or_default(),
        minutes: create.minutes,
        tpm_ek_sha256: create.tpm_ek.unwrap_or_default(),
        tpm_ek_certificate: certificate.transpose()?.unwrap_or_default(),
        reenrol: create.reenrol,
    };
    if let Some(path) = &create.out {
        files::check_new(path)?;
    }
    let answer = app.client.joins().create(request).await?.into_inner();
    let ticket = given(answer.ticket)?;
    let run = on_the_host(create.kind, &ticket);
    if let Some(path) = create.out {
        files::write_private(&path, &format!("{}\n", answer.secret))?;
        app.output.one(&ticket)?;
        noteln!(
            "copy {} to the host as {TICKET_FILE} (mode 0600), then run there:",
            path.display()
        );
        noteln!("  {run}");
        return Ok(());
    }
    let whole = serde_json::json!({
        "ticket": to_json(&ticket)?,
        "secret": answer.secret,
        "command": run,
    });
    app.output.secret(&answer.secret, &whole)?;
    noteln!("write it to {TICKET_FILE} on the host (mode 0600), then run there:");
    noteln!("  {run}");
    Ok(())
}

/// Path of the ticket in the printed commands.
const TICKET_FILE: &str = "/etc/metalmesh/ticket";

/// The command that redeems a ticket. It contains no secret, as other users of the host see
/// arguments.
fn on_the_host(kind: AgentKindArg, ticket: &JoinTicket) -> String {
    let (agent, name) = match kind {
        AgentKindArg::Core => ("metalmesh-core", "core"),
        AgentKindArg::Bmc => ("metalmesh-bmc", "bmc"),
        AgentKindArg::Pixie => ("metalmesh-pixie", "pixie"),
    };
    let tpm = if ticket.tpm_ek_sha256.is_empty() {
        ""
    } else {
        " --tpm /dev/tpmrm0"
    };
    format!(
        "{agent} run --config /etc/metalmesh/{name}.toml --state-dir /var/lib/metalmesh/{name} \
         --ticket-file {TICKET_FILE}{tpm}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_its_command() {
        let plain = JoinTicket::default();
        let run = on_the_host(AgentKindArg::Core, &plain);
        assert_eq!(
            run,
            "metalmesh-core run --config /etc/metalmesh/core.toml --state-dir \
             /var/lib/metalmesh/core --ticket-file /etc/metalmesh/ticket"
        );
        let of_tpm = JoinTicket {
            tpm_ek_sha256: "ab".into(),
            ..plain
        };
        assert!(on_the_host(AgentKindArg::Pixie, &of_tpm).ends_with("ticket --tpm /dev/tpmrm0"));
    }
}
