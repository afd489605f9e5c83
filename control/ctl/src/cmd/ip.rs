//! `metalmesh ip`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    IpAddressFamily, IpQuery, IpServiceCreateRequest, IpServiceDeleteRequest, IpServiceGetRequest,
    IpServiceListRequest, IpServiceUpdateRequest, IpType,
};

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::labels;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take an address out of a network.
    Create {
        #[arg(long)]
        network: String,
        /// This one; any free one without it.
        #[arg(long)]
        ip: Option<String>,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        description: Option<String>,
        /// Keep it when its machine is freed.
        #[arg(long = "static")]
        fixed: bool,
        /// An IPv6 address.
        #[arg(long, conflicts_with = "ip")]
        v6: bool,
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// List addresses.
    #[command(visible_alias = "list")]
    Ls {
        #[arg(long)]
        network: Option<String>,
    },
    /// Show an address.
    #[command(visible_alias = "describe")]
    Show { ip: String },
    /// Change an address.
    Update {
        ip: String,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        description: Option<String>,
        /// Keep it when its machine is freed.
        #[arg(long = "static")]
        fixed: bool,
        /// Set (`a=b`) or remove (`a-`) a label.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Give an address back.
    #[command(visible_alias = "delete")]
    Rm { ip: String },
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create {
            network,
            ip,
            name,
            description,
            fixed,
            v6,
            labels: flags,
        } => {
            let family = v6.then(|| IpAddressFamily::V6.into());
            let request = IpServiceCreateRequest {
                network,
                project: app.need_project().await?,
                name,
                description,
                ip,
                machine: None,
                labels: labels(&flags)?,
                r#type: fixed.then(|| IpType::Static.into()),
                address_family: family,
            };
            app.output.one(&given(
                app.client.ips().create(request).await?.into_inner().ip,
            )?)
        }
        Command::Ls { network } => {
            let query = Some(IpQuery {
                network,
                ..Default::default()
            });
            let ips = if let Some(project) = app.project().await? {
                let request = IpServiceListRequest { project, query };
                app.client.ips().list(request).await?.into_inner().ips
            } else {
                let request = admin::IpServiceListRequest { query };
                app.client.admin_ips().list(request).await?.into_inner().ips
            };
            app.output.list(&ips)
        }
        Command::Show { ip } => {
            let project = app.need_project().await?;
            let request = IpServiceGetRequest {
                ip,
                project,
                namespace: None,
            };
            app.output.one(&given(
                app.client.ips().get(request).await?.into_inner().ip,
            )?)
        }
        Command::Update {
            ip,
            name,
            description,
            fixed,
            labels,
        } => {
            let request = IpServiceUpdateRequest {
                ip,
                update_meta: server_lock(),
                project: app.need_project().await?,
                name,
                description,
                r#type: fixed.then(|| IpType::Static.into()),
                labels: label_patch(&labels)?,
            };
            app.output.one(&given(
                app.client.ips().update(request).await?.into_inner().ip,
            )?)
        }
        Command::Rm { ip } => {
            let request = IpServiceDeleteRequest {
                ip,
                project: app.need_project().await?,
            };
            app.output.one(&given(
                app.client.ips().delete(request).await?.into_inner().ip,
            )?)
        }
    }
}
