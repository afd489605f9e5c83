//! `metalmesh component`: components of the published stack, and credentials of project components.

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
pub(crate) enum ComponentCommand {
    /// Create a credential for a component that works for one project. It may call the methods that
    /// its kind needs, in that project alone.
    Create(ComponentCreateArgs),
    /// Revoke the credential of a project's component now.
    Revoke {
        /// Id of the component.
        id: String,
        /// Project of the component, by id or name.
        #[arg(long)]
        project: String,
    },
    /// List the components of the published stack that report themselves, or with --project those
    /// with a credential for the project.
    #[command(visible_alias = "list")]
    Ls {
        /// List the components that work for this project.
        #[arg(long, conflicts_with = "kind")]
        project: Option<String>,
        /// Only components of this type: pixiecore, metal-core, metal-bmc, ...
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
    },
    /// Show a component.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the component.
        id: String,
    },
    /// Delete a component; one that is alive comes back with its next report.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the component.
        id: String,
    },
    /// Delete all components that missed their last three reports.
    Prune,
}

#[derive(Debug, Args)]
pub(crate) struct ComponentCreateArgs {
    /// Name of the component, such as that of its Kubernetes cluster.
    name: String,
    /// Project that it works for, by id or name.
    #[arg(long)]
    project: String,
    /// Kind of the component, which decides the methods that it may call.
    #[arg(long, ignore_case = true)]
    kind: ComponentKindArg,
    /// Validity of the credential, in days.
    #[arg(long, default_value_t = 90)]
    days: u32,
    /// Write the token to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ComponentKindArg {
    Gardener,
    Ccm,
    MachineControllerManager,
    FirewallControllerManager,
    ClusterApi,
    Reader,
}

async fn make(app: &App, create: ComponentCreateArgs) -> Result<()> {
    let kind = match create.kind {
        ComponentKindArg::Gardener => ProjectComponentKind::Gardener,
        ComponentKindArg::Ccm => ProjectComponentKind::Ccm,
        ComponentKindArg::MachineControllerManager => {
            ProjectComponentKind::MachineControllerManager
        }
        ComponentKindArg::FirewallControllerManager => {
            ProjectComponentKind::FirewallControllerManager
        }
        ComponentKindArg::ClusterApi => ProjectComponentKind::ClusterApi,
        ComponentKindArg::Reader => ProjectComponentKind::Reader,
    };
    let request = ProjectComponentServiceCreateRequest {
        project: app.project_id(&create.project).await?,
        kind: kind.into(),
        name: create.name,
        days: create.days,
    };
    if let Some(path) = &create.out {
        files::check_new(path)?;
    }
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

pub(crate) async fn run(app: &App, command: ComponentCommand) -> Result<()> {
    let mut components = app.client.admin_components();
    match command {
        ComponentCommand::Create(create) => make(app, create).await,
        ComponentCommand::Revoke { id, project } => {
            let project = app.project_id(&project).await?;
            let request = ProjectComponentServiceRevokeRequest { project, id };
            app.client.project_components().revoke(request).await?;
            Ok(())
        }
        ComponentCommand::Ls {
            project: Some(project),
            ..
        } => {
            let project = app.project_id(&project).await?;
            let request = ProjectComponentServiceListRequest { project };
            let answer = app.client.project_components().list(request).await?;
            app.output.list(&answer.into_inner().components)
        }
        ComponentCommand::Ls { kind, .. } => {
            let kind = kind.map(|kind| enum_value("metalstack.api.v2.ComponentType", &kind));
            let query = ComponentQuery {
                r#type: kind.transpose()?,
                ..Default::default()
            };
            app.output.list(&all(app, query).await?)
        }
        ComponentCommand::Show { id } => {
            let request = admin::ComponentServiceGetRequest { uuid: id };
            let answer = components.get(request).await?.into_inner();
            app.output.one::<Component>(&given(answer.component)?)
        }
        ComponentCommand::Rm { id } => {
            let request = admin::ComponentServiceDeleteRequest { uuid: id };
            let answer = components.delete(request).await?.into_inner();
            app.output.one::<Component>(&given(answer.component)?)
        }
        ComponentCommand::Prune => {
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

/// `true` if a component missed its last three reports.
fn is_silent(component: &Component) -> bool {
    // The server stores a report in which only the time changed at most every five minutes, so the
    // stored time may be that old for a component that is alive.
    const WRITTEN_SECONDS: i64 = 300;
    let seconds = component.interval.map_or(0, |interval| interval.seconds);
    is_older(
        component.reported_at.as_ref(),
        seconds.saturating_mul(3) + WRITTEN_SECONDS,
    )
}
