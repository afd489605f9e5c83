//! `metalmesh audit`.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{AuditQuery, AuditServiceListRequest};

use super::given;
use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what was done, newest last.
    #[command(visible_alias = "list")]
    Ls(Filter),
    /// Show one record.
    #[command(visible_alias = "describe")]
    Show { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Of this tenant's projects, as its owner; all as an administrator without it.
    #[arg(long)]
    tenant: Option<String>,
    #[arg(long)]
    user: Option<String>,
    #[arg(long)]
    method: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i32).range(1..=1000))]
    limit: i32,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Show { id } => {
            let request = admin::AuditServiceGetRequest {
                uuid: id,
                phase: None,
            };
            let answer = app.client.admin_audits().get(request).await?.into_inner();
            app.output.one(&given(answer.trace)?)
        }
        Command::Ls(filter) => {
            let query = AuditQuery {
                user: filter.user,
                method: filter.method,
                project: app.project().await?,
                limit: Some(filter.limit),
                ..Default::default()
            };
            let traces = match filter.tenant {
                Some(login) => {
                    let request = AuditServiceListRequest {
                        login,
                        query: Some(query),
                    };
                    app.client.audits().list(request).await?.into_inner().traces
                }
                None => {
                    let request = admin::AuditServiceListRequest { query: Some(query) };
                    app.client
                        .admin_audits()
                        .list(request)
                        .await?
                        .into_inner()
                        .traces
                }
            };
            app.output.list(&traces)
        }
    }
}
