//! `metalmesh component`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{Component, ComponentQuery};

use super::given;
use crate::app::App;
use crate::text::{enum_value, is_older};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the components of the published stack that report themselves.
    #[command(visible_alias = "list")]
    Ls {
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

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut components = app.client.admin_components();
    match command {
        Command::Ls { kind } => {
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
