//! `metalmesh ip`.

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Ip, IpAddressFamily, IpQuery, IpServiceCreateRequest, IpServiceDeleteRequest,
    IpServiceGetRequest, IpServiceListRequest, IpServiceUpdateRequest, IpType,
};
use tonic::Request;
use tonic::metadata::MetadataValue;

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::labels;

/// Header of a request that says in which namespace its address is.
const NAMESPACE: &str = "metalmesh-namespace";
/// The namespace of addresses that are in none.
const NO_NAMESPACE: &str = "none";

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
    Show {
        ip: String,
        #[command(flatten)]
        place: Place,
    },
    /// Change an address.
    Update(Update),
    /// Give an address back.
    #[command(visible_alias = "delete")]
    Rm {
        ip: String,
        #[command(flatten)]
        place: Place,
    },
}

/// The namespace that an address is in.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Project whose namespace the address is in, or none; needed when the project has the address
    /// in several networks.
    #[arg(long, value_name = "PROJECT")]
    namespace: Option<String>,
}

impl Place {
    /// The namespace's id; `None` also for "none".
    async fn id(&self, app: &App) -> Result<Option<String>> {
        match self.namespace.as_deref() {
            None | Some(NO_NAMESPACE) => Ok(None),
            Some(project) => app.project_id(project).await.map(Some),
        }
    }

    /// A request that says where the address is, which its message cannot.
    async fn request<T>(&self, app: &App, message: T) -> Result<Request<T>> {
        let mut request = Request::new(message);
        if self.namespace.is_some() {
            let id = self.id(app).await?;
            let value = MetadataValue::try_from(id.as_deref().unwrap_or(NO_NAMESPACE))
                .context("the namespace has characters that a header cannot carry")?;
            request.metadata_mut().insert(NAMESPACE, value);
        }
        Ok(request)
    }
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
    #[command(flatten)]
    place: Place,
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
        Command::Show { ip, place } => {
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
        Command::Update(update) => app.output.one(&changed(app, update).await?),
        Command::Rm { ip, place } => {
            let project = app.need_project().await?;
            let request = place.request(app, IpServiceDeleteRequest { ip, project });
            let request = request.await?;
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
    let request = update.place.request(app, request).await?;
    given(app.client.ips().update(request).await?.into_inner().ip)
}
