//! `metalmesh join`: one-time tickets by which agents get their identity.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use proto_public::metalmesh::admin::v1::{
    AgentKind, JoinServiceCreateRequest, JoinServiceListRequest, JoinServiceRevokeRequest,
};

use super::given;
use crate::app::App;
use crate::files;
use crate::output::to_json;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a ticket for one agent, bound to its key.
    Create(Create),
    /// List tickets.
    #[command(visible_alias = "list")]
    Ls,
    /// Revoke a ticket that was not used.
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
    #[arg(long, value_name = "HEX")]
    key_sha256: String,
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
    let request = JoinServiceCreateRequest {
        kind: kind.into(),
        partition: create.partition,
        id: create.id,
        key_sha256: create.key_sha256,
        minutes: create.minutes,
    };
    let answer = app.client.joins().create(request).await?.into_inner();
    let ticket = given(answer.ticket)?;
    if let Some(path) = create.out {
        files::write_private(&path, &format!("{}\n", answer.secret))?;
        return app.output.one(&ticket);
    }
    let whole = serde_json::json!({ "ticket": to_json(&ticket)?, "secret": answer.secret });
    app.output.secret(&answer.secret, &whole)
}
