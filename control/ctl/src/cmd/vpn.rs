//! `metalmesh vpn`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use proto_public::admin::v2 as admin;

use crate::app::App;
use crate::text::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum VpnCommand {
    /// Create a key with which a machine joins a project's VPN. It is shown once.
    AuthKey {
        /// Project of the VPN, by id or name.
        #[arg(long)]
        project: String,
        /// Reason for the audit trail.
        #[arg(long)]
        reason: String,
        /// Remove nodes that joined with the key when they disconnect.
        #[arg(long)]
        ephemeral: bool,
        /// Allow the key to be used more than once.
        #[arg(long)]
        reusable: bool,
        /// Validity of the key, such as 90s, 10m, 8h or 30d.
        #[arg(long, default_value = "2h", value_parser = parse_duration)]
        expires: Duration,
    },
    /// List the nodes of the VPN.
    #[command(visible_alias = "list")]
    Ls {
        /// Only nodes of this project.
        #[arg(long)]
        project: Option<String>,
    },
}

pub(crate) async fn run(app: &App, command: VpnCommand) -> Result<()> {
    let mut vpn = app.client.admin_vpn();
    match command {
        VpnCommand::AuthKey {
            project,
            reason,
            ephemeral,
            reusable,
            expires,
        } => {
            let request = admin::VpnServiceAuthKeyRequest {
                project: app.project_id(&project).await?,
                ephemeral,
                expires: Some(prost_types::Duration {
                    seconds: i64::try_from(expires.as_secs()).context("--expires is too long")?,
                    nanos: 0,
                }),
                reason,
                reusable,
            };
            let made = vpn.auth_key(request).await?.into_inner();
            app.output.one(&made)
        }
        VpnCommand::Ls { project } => {
            let project = match project {
                Some(project) => Some(app.project_id(&project).await?),
                None => None,
            };
            let request = admin::VpnServiceListNodesRequest { project };
            let nodes = vpn.list_nodes(request).await?.into_inner().nodes;
            app.output.list(&nodes)
        }
    }
}
