//! `metalmesh component`: what reports that it lives, and who works for a project.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{Component, ComponentQuery};
use proto_public::metalmesh::admin::v1::{
    ProjectComponentKind, ProjectComponentServiceCreateRequest, ProjectComponentServiceListRequest,
    ProjectComponentServiceRevokeRequest,
};

use super::given;
use crate::app::App;
use crate::files;
use crate::output::to_json;
use crate::text::{enum_value, is_older};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a credential for a component that works for one project: it can do what its kind
    /// needs in that project, and nothing outside.
    Create(Create),
    /// End a project's component's credential now.
    Revoke {
        id: String,
        /// Whose: id or name of the project.
        #[arg(long)]
        project: String,
    },
    /// List the components of the published stack that report themselves; with --project, those
    /// that have a credential for it.
    #[command(visible_alias = "list")]
    Ls {
        /// Those that work for this project.
        #[arg(long, conflicts_with = "kind")]
        project: Option<String>,
        /// Of this type only: pixiecore, metal-core, metal-bmc, ...
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
    },
    /// Show a component.
    #[command(visible_alias = "describe")]
    Show { id: String },
    /// Forget a component; one that lives comes back with its next report.
    #[command(visible_alias = "delete")]
    Rm { id: String },
    /// Forget all components that missed their last three reports.
    Prune,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Which one, such as the cluster's name.
    name: String,
    /// For whom it works: id or name of the project.
    #[arg(long)]
    project: String,
    #[arg(long)]
    kind: Kind,
    /// How long it is good for.
    #[arg(long, default_value_t = 90)]
    days: u32,
    /// Write the token to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Gardener,
    Ccm,
    MachineControllerManager,
    FirewallControllerManager,
    ClusterApi,
    Reader,
}

async fn make(app: &App, create: Create) -> Result<()> {
    let kind = match create.kind {
        Kind::Gardener => ProjectComponentKind::Gardener,
        Kind::Ccm => ProjectComponentKind::Ccm,
        Kind::MachineControllerManager => ProjectComponentKind::MachineControllerManager,
        Kind::FirewallControllerManager => ProjectComponentKind::FirewallControllerManager,
        Kind::ClusterApi => ProjectComponentKind::ClusterApi,
        Kind::Reader => ProjectComponentKind::Reader,
    };
    let request = ProjectComponentServiceCreateRequest {
        project: app.project_id(&create.project).await?,
        kind: kind.into(),
        name: create.name,
        days: create.days,
    };
    let answer = app.client.project_components().create(request).await?;
    let answer = answer.into_inner();
    let component = given(answer.component)?;
    if let Some(path) = create.out {
        files::write_private(&path, &format!("{}\n", answer.secret))?;
        return app.output.one(&component);
    }
    let whole = serde_json::json!({
        "component": to_json(&component)?,
        "secret": answer.secret,
    });
    app.output.secret(&answer.secret, &whole)
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut components = app.client.admin_components();
    match command {
        Command::Create(create) => make(app, create).await,
        Command::Revoke { id, project } => {
            let project = app.project_id(&project).await?;
            let request = ProjectComponentServiceRevokeRequest { project, id };
            app.client.project_components().revoke(request).await?;
            Ok(())
        }
        Command::Ls {
            project: Some(project),
            ..
        } => {
            let project = app.project_id(&project).await?;
            let request = ProjectComponentServiceListRequest { project };
            let answer = app.client.project_components().list(request).await?;
            app.output.list(&answer.into_inner().components)
        }
        Command::Ls { kind, .. } => {
            let kind = kind.map(|kind| enum_value("metalstack.api.v2.ComponentType", &kind));
            let query = ComponentQuery {
                r#type: kind.transpose()?,
                ..Default::default()
            };
            app.output.list(&all(app, query).await?)
        }
        Command::Show { id } => {
            let request = admin::ComponentServiceGetRequest { uuid: id };
            let answer = components.get(request).await?.into_inner();
            app.output.one::<Component>(&given(answer.component)?)
        }
        Command::Rm { id } => {
            let request = admin::ComponentServiceDeleteRequest { uuid: id };
            let answer = components.delete(request).await?.into_inner();
            app.output.one::<Component>(&given(answer.component)?)
        }
        Command::Prune => {
            let mut gone = all(app, ComponentQuery::default()).await?;
            gone.retain(is_silent);
            for component in &gone {
                let uuid = component.uuid.clone();
                components
                    .delete(admin::ComponentServiceDeleteRequest { uuid })
                    .await?;
            }
            app.output.list(&gone)
        }
    }
}

async fn all(app: &App, query: ComponentQuery) -> Result<Vec<Component>> {
    let request = admin::ComponentServiceListRequest { query: Some(query) };
    let answer = app.client.admin_components().list(request).await?;
    Ok(answer.into_inner().components)
}

/// Reports of which nothing but the time changed are written down each five minutes only.
fn is_silent(component: &Component) -> bool {
    const WRITTEN_SECONDS: i64 = 300;
    let seconds = component.interval.map_or(0, |it| it.seconds);
    is_older(
        component.reported_at.as_ref(),
        seconds.saturating_mul(3) + WRITTEN_SECONDS,
    )
}
