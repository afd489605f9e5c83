//! `metalmesh ip`.

mod namespace;

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

use namespace::IpNamespaceArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum IpCommand {
    /// Allocate an address in a network.
    Create(IpCreateArgs),
    /// List addresses.
    #[command(visible_alias = "list")]
    Ls {
        /// Only addresses of this network.
        #[arg(long)]
        network: Option<String>,
    },
    /// Show an address.
    #[command(visible_alias = "describe")]
    Show {
        /// The address.
        ip: String,
        #[command(flatten)]
        place: IpNamespaceArgs,
    },
    /// Change an address.
    Update(IpUpdateArgs),
    /// Release an address.
    #[command(visible_alias = "delete")]
    Rm {
        /// The address.
        ip: String,
        #[command(flatten)]
        place: IpNamespaceArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct IpCreateArgs {
    /// Network of the address.
    #[arg(long)]
    network: String,
    /// Allocate this address; without it any free one.
    #[arg(long)]
    ip: Option<String>,
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Keep it when its machine is freed.
    #[arg(long = "static")]
    fixed: bool,
    /// Allocate an IPv6 address.
    #[arg(long, conflicts_with = "ip")]
    v6: bool,
    /// Set a label. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct IpUpdateArgs {
    /// The address.
    ip: String,
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Keep it when its machine is freed.
    #[arg(long = "static")]
    fixed: bool,
    /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    #[command(flatten)]
    place: IpNamespaceArgs,
}

pub(crate) async fn run(app: &App, command: IpCommand) -> Result<()> {
    match command {
        IpCommand::Create(create) => app.output.one(&made(app, create).await?),
        IpCommand::Ls { network } => {
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
        IpCommand::Show { ip, place } => {
            let project = app.need_project().await?;
            let request = IpServiceGetRequest {
                ip,
                project,
                namespace: place.id(app).await?,
            };
            app.output.one(&given(
                app.client.ips().get(request).await?.into_inner().ip,
            )?)
        }
        IpCommand::Update(update) => app.output.one(&changed(app, update).await?),
        IpCommand::Rm { ip, place } => {
            let project = app.need_project().await?;
            let request = place.request(app, IpServiceDeleteRequest { ip, project });
            let request = request.await?;
            app.output.one(&given(
                app.client.ips().delete(request).await?.into_inner().ip,
            )?)
        }
    }
}

async fn made(app: &App, create: IpCreateArgs) -> Result<Ip> {
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

async fn changed(app: &App, update: IpUpdateArgs) -> Result<Ip> {
    let request = IpServiceUpdateRequest {
        ip: update.ip,
        update_meta: server_lock(),
        project: app.need_project().await?,
        name: update.name,
        description: update.description,
        r#type: update.fixed.then(|| IpType::Static.into()),
        labels: label_patch(&update.labels)?,
    };
    let request = update.place.request(app, request).await?;
    given(app.client.ips().update(request).await?.into_inner().ip)
}
