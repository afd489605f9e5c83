//! `metalmesh ip`.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Ip, IpAddressFamily, IpQuery, IpServiceCreateRequest, IpServiceDeleteRequest,
    IpServiceGetRequest, IpServiceListRequest, IpServiceUpdateRequest, IpType,
};

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::labels;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take an address out of a network.
    Create(Create),
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
    Update(Update),
    /// Give an address back.
    #[command(visible_alias = "delete")]
    Rm { ip: String },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
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
}

#[derive(Debug, Args)]
pub(crate) struct Update {
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
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => app.output.one(&made(app, create).await?),
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
        Command::Update(update) => app.output.one(&changed(app, update).await?),
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

async fn made(app: &App, create: Create) -> Result<Ip> {
    let request = IpServiceCreateRequest {
        network: create.network,
        project: app.need_project().await?,
        name: create.name,
        description: create.description,
        ip: create.ip,
        machine: None,
        labels: labels(&create.labels)?,
        r#type: create.fixed.then(|| IpType::Static.into()),
        address_family: create.v6.then(|| IpAddressFamily::V6.into()),
    };
    given(app.client.ips().create(request).await?.into_inner().ip)
}

async fn changed(app: &App, update: Update) -> Result<Ip> {
    let request = IpServiceUpdateRequest {
        ip: update.ip,
        update_meta: server_lock(),
        project: app.need_project().await?,
        name: update.name,
        description: update.description,
        r#type: update.fixed.then(|| IpType::Static.into()),
        labels: label_patch(&update.labels)?,
    };
    given(app.client.ips().update(request).await?.into_inner().ip)
}
