//! `metalmesh join`: one-time tickets by which agents get their identity.

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
pub(crate) enum Command {
    /// Create a ticket for one agent, bound to its key or to its host's TPM.
    Create(Create),
    /// List tickets.
    #[command(visible_alias = "list")]
    Ls,
    /// Revoke a ticket; an agent that joined by it last is shut out.
    #[command(visible_alias = "rm")]
    Revoke { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    kind: Kind,
    #[arg(long)]
    partition: String,
    /// The agent's name; of a core agent the switch's.
    #[arg(long)]
    id: String,
    /// SHA-256 of the agent's public key, as `metalmesh-core key` and its like print it.
    #[arg(long, value_name = "HEX", required_unless_present_any = ["tpm_ek", "tpm_ek_cert"])]
    key_sha256: Option<String>,
    /// SHA-256 of the public endorsement key of the host's TPM 2.0, as `metalmesh-core tpm` and
    /// its like print it: only at that TPM is the ticket good.
    #[arg(long, value_name = "HEX", conflicts_with = "tpm_ek_cert")]
    tpm_ek: Option<String>,
    /// The certificate of that key, as the TPM's maker gave it: DER or PEM, of an ECC P-256 key.
    #[arg(long, value_name = "FILE")]
    tpm_ek_cert: Option<PathBuf>,
    /// How long the ticket is good for.
    #[arg(long, default_value_t = 15)]
    minutes: u32,
    /// Write the ticket to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Core,
    Bmc,
    Pixie,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => make(app, create).await,
        Command::Ls => {
            let answer = app
                .client
                .joins()
                .list(JoinServiceListRequest {})
                .await?
                .into_inner();
            app.output.list(&answer.tickets)
        }
        Command::Revoke { id } => {
            let answer = app
                .client
                .joins()
                .revoke(JoinServiceRevokeRequest { id })
                .await?;
            app.output.one(&given(answer.into_inner().ticket)?)
        }
    }
}

async fn make(app: &App, create: Create) -> Result<()> {
    let kind = match create.kind {
        Kind::Core => AgentKind::Core,
        Kind::Bmc => AgentKind::Bmc,
        Kind::Pixie => AgentKind::Pixie,
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
    };
    let answer = app.client.joins().create(request).await?.into_inner();
    let ticket = given(answer.ticket)?;
    let run = on_the_host(create.kind, &ticket);
    if let Some(path) = create.out {
        files::write_private(&path, &format!("{}\n", answer.secret))?;
        app.output.one(&ticket)?;
        noteln!(
            "bring {} to the host as {TICKET_FILE} (mode 0600), then run there:",
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
    noteln!("put it into {TICKET_FILE} on the host (mode 0600), then run there:");
    noteln!("  {run}");
    Ok(())
}

/// Where the examples have a ticket.
const TICKET_FILE: &str = "/etc/metalmesh/ticket";

/// The command that redeems a ticket. No secret is in it: arguments are seen by everybody.
fn on_the_host(kind: Kind, ticket: &JoinTicket) -> String {
    let (agent, name) = match kind {
        Kind::Core => ("metalmesh-core", "core"),
        Kind::Bmc => ("metalmesh-bmc", "bmc"),
        Kind::Pixie => ("metalmesh-pixie", "pixie"),
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
        let run = on_the_host(Kind::Core, &plain);
        assert_eq!(
            run,
            "metalmesh-core run --config /etc/metalmesh/core.toml --state-dir \
             /var/lib/metalmesh/core --ticket-file /etc/metalmesh/ticket"
        );
        let of_tpm = JoinTicket {
            tpm_ek_sha256: "ab".into(),
            ..plain
        };
        assert!(on_the_host(Kind::Pixie, &of_tpm).ends_with("ticket --tpm /dev/tpmrm0"));
    }
}
