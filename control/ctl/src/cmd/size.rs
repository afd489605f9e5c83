//! `metalmesh size`.

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Meta, Size, SizeConstraint, SizeServiceGetRequest, SizeServiceListRequest,
};

use super::{given, label_patch, server_lock, size_images, size_reservation};
use crate::app::App;
use crate::text::{enum_value, labels, parse_bytes};

#[derive(Debug, Subcommand)]
pub(crate) enum SizeCommand {
    /// Create a size.
    Create {
        /// Id of the size.
        id: String,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Hardware of the machines: cores=4, memory=1Gi-4Gi, storage=10Gi-1Ti, gpu=1:AD102*.
        /// Repeatable.
        #[arg(long = "constraint", value_name = "KIND=MIN[-MAX]", required = true)]
        constraints: Vec<String>,
        /// Set a label. Repeatable.
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// List sizes.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a size.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the size.
        id: String,
    },
    /// Change a size.
    Update {
        /// Id of the size.
        id: String,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Hardware of the machines, as with create; replaces all constraints.
        #[arg(long = "constraint", value_name = "KIND=MIN[-MAX]")]
        constraints: Vec<String>,
        /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Delete an unused size.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the size.
        id: String,
    },
    /// Manage reservations of machines of a size for a project.
    #[command(subcommand)]
    Reservation(size_reservation::SizeReservationCommand),
    /// Manage the images that machines of a size can run.
    #[command(subcommand)]
    Images(size_images::SizeImagesCommand),
}

pub(crate) async fn run(app: &App, command: SizeCommand) -> Result<()> {
    match command {
        SizeCommand::Create {
            id,
            name,
            description,
            constraints,
            labels: flags,
        } => {
            let size = Size {
                id,
                meta: Some(Meta {
                    labels: labels(&flags)?,
                    ..Default::default()
                }),
                name,
                description,
                constraints: parse_constraints(&constraints)?,
            };
            let request = admin::SizeServiceCreateRequest { size: Some(size) };
            let answer = app.client.admin_sizes().create(request).await?.into_inner();
            app.output.one(&given(answer.size)?)
        }
        SizeCommand::Ls => {
            let request = SizeServiceListRequest { query: None };
            app.output
                .list(&app.client.sizes().list(request).await?.into_inner().sizes)
        }
        SizeCommand::Show { id } => {
            let answer = app.client.sizes().get(SizeServiceGetRequest { id }).await?;
            app.output.one(&given(answer.into_inner().size)?)
        }
        SizeCommand::Update {
            id,
            name,
            description,
            constraints,
            labels,
        } => {
            let request = admin::SizeServiceUpdateRequest {
                id,
                update_meta: server_lock(),
                name,
                description,
                constraints: parse_constraints(&constraints)?,
                labels: label_patch(&labels)?,
            };
            let answer = app.client.admin_sizes().update(request).await?.into_inner();
            app.output.one(&given(answer.size)?)
        }
        SizeCommand::Rm { id } => {
            let request = admin::SizeServiceDeleteRequest { id };
            let answer = app.client.admin_sizes().delete(request).await?.into_inner();
            app.output.one(&given(answer.size)?)
        }
        SizeCommand::Reservation(command) => size_reservation::run(app, command).await,
        SizeCommand::Images(command) => size_images::run(app, command).await,
    }
}

fn parse_constraints(flags: &[String]) -> Result<Vec<SizeConstraint>> {
    flags.iter().map(|flag| parse_constraint(flag)).collect()
}

fn parse_constraint(flag: &str) -> Result<SizeConstraint> {
    let (kind, range) = flag
        .split_once('=')
        .with_context(|| format!("{flag:?} is not KIND=MIN-MAX, for example memory=1Gi-4Gi"))?;
    let (range, identifier) = match range.split_once(':') {
        Some((range, identifier)) => (range, Some(identifier.to_owned())),
        None => (range, None),
    };
    let (min, max) = range.split_once('-').unwrap_or((range, range));
    let (min, max) = (parse_bytes(min)?, parse_bytes(max)?);
    ensure!(min <= max, "{flag:?} has its minimum above its maximum");
    let r#type = enum_value("metalstack.api.v2.SizeConstraintType", kind)?;
    Ok(SizeConstraint {
        r#type,
        min,
        max,
        identifier,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints() {
        let memory = parse_constraint("memory=1Gi-4Gi").unwrap();
        assert_eq!(
            (memory.r#type, memory.min, memory.max),
            (2, 1 << 30, 4 << 30)
        );
        let cores = parse_constraint("cores=4").unwrap();
        assert_eq!((cores.r#type, cores.min, cores.max), (1, 4, 4));
        let gpu = parse_constraint("gpu=1-2:AD102*").unwrap();
        assert_eq!(gpu.identifier.as_deref(), Some("AD102*"));
        for bad in ["memory", "memory=4Gi-1Gi", "wings=2", "cores=x"] {
            assert!(parse_constraint(bad).is_err(), "{bad}");
        }
    }
}
