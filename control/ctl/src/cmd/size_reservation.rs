//! `metalmesh size reservation`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Meta, SizeReservation, SizeReservationQuery, SizeReservationServiceListRequest,
};

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::labels;

#[derive(Debug, Subcommand)]
pub(crate) enum SizeReservationCommand {
    /// Reserve machines of a size for a project.
    Create {
        /// Name of the reservation.
        name: String,
        /// Project of the reservation, by id or name.
        #[arg(long = "for", value_name = "PROJECT")]
        project: String,
        /// Size of the machines.
        #[arg(long)]
        size: String,
        /// Partition of the machines. Repeatable.
        #[arg(long = "partition", value_name = "PARTITION", required = true)]
        partitions: Vec<String>,
        /// Number of machines in each of the partitions.
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
        amount: i32,
        /// Description, free text.
        #[arg(long, default_value = "")]
        description: String,
        /// Set a label. Repeatable.
        #[arg(long = "label", value_name = "NAME=VALUE")]
        labels: Vec<String>,
    },
    /// List all reservations, as an administrator, or those of a project.
    #[command(visible_alias = "list")]
    Ls {
        /// Only reservations of this project.
        #[arg(long = "for", value_name = "PROJECT")]
        project: Option<String>,
        /// Only reservations of this size.
        #[arg(long)]
        size: Option<String>,
    },
    /// Change a reservation.
    Update {
        /// Id of the reservation.
        id: String,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Partition of the machines; replaces all partitions. Repeatable.
        #[arg(long = "partition", value_name = "PARTITION", required = true)]
        partitions: Vec<String>,
        /// Number of machines in each of the partitions.
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
        amount: Option<i32>,
        /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Delete a reservation; its machines can be allocated by all projects.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the reservation.
        id: String,
    },
}

pub(crate) async fn run(app: &App, command: SizeReservationCommand) -> Result<()> {
    let mut all = app.client.admin_size_reservations();
    match command {
        SizeReservationCommand::Create {
            name,
            project,
            size,
            partitions,
            amount,
            description,
            labels: flags,
        } => {
            let reservation = SizeReservation {
                id: String::new(),
                meta: Some(Meta {
                    labels: labels(&flags)?,
                    ..Default::default()
                }),
                name,
                description,
                project: app.project_id(&project).await?,
                size,
                partitions,
                amount,
            };
            let request = admin::SizeReservationServiceCreateRequest {
                size_reservation: Some(reservation),
            };
            let answer = all.create(request).await?.into_inner();
            app.output.one(&given(answer.size_reservation)?)
        }
        SizeReservationCommand::Ls { project, size } => list(app, project, size).await,
        SizeReservationCommand::Update {
            id,
            name,
            description,
            partitions,
            amount,
            labels,
        } => {
            let request = admin::SizeReservationServiceUpdateRequest {
                id,
                name,
                description,
                update_meta: server_lock(),
                partitions,
                amount,
                labels: label_patch(&labels)?,
            };
            let answer = all.update(request).await?.into_inner();
            app.output.one(&given(answer.size_reservation)?)
        }
        SizeReservationCommand::Rm { id } => {
            let request = admin::SizeReservationServiceDeleteRequest { id };
            let answer = all.delete(request).await?.into_inner();
            app.output.one(&given(answer.size_reservation)?)
        }
    }
}

async fn list(app: &App, project: Option<String>, size: Option<String>) -> Result<()> {
    let project = match project {
        Some(project) => Some(app.project_id(&project).await?),
        None => None,
    };
    let query = SizeReservationQuery {
        project: project.clone(),
        size,
        ..Default::default()
    };
    let query = Some(query);
    let request = admin::SizeReservationServiceListRequest {
        query: query.clone(),
    };
    let found = match (
        app.client.admin_size_reservations().list(request).await,
        project,
    ) {
        (Ok(answer), _) => answer.into_inner().size_reservations,
        (Err(status), Some(project)) if status.code() == tonic::Code::PermissionDenied => {
            let own = SizeReservationServiceListRequest { project, query };
            let answer = app.client.size_reservations().list(own).await?;
            answer.into_inner().size_reservations
        }
        (Err(status), _) => return Err(status.into()),
    };
    app.output.list(&found)
}
