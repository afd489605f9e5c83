//! `metalmesh node-allocation`.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    NodeAllocation, NodeAllocationExtra, NodeAllocationServiceCreateRequest,
    NodeAllocationServiceGetRequest, NodeAllocationServiceListRequest,
    NodeAllocationServiceRemoveRequest, NodeAllocationServiceUpdateRequest, NodeAllocationWish,
    OperatorNodeAllocationServiceCreateRequest, OperatorNodeAllocationServiceListRequest,
    OperatorNodeAllocationServiceRemoveRequest,
};

use super::{given, server_lock};
use crate::app::App;
use crate::text::pairs;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeAllocationCommand {
    /// Hold a machine that the project owns or leases, or with --all one of the site.
    Create(NodeAllocationCreateArgs),
    /// List the node allocations of the project, or with --all those of everybody.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a node allocation of the project.
    #[command(visible_alias = "describe")]
    Show {
        /// Id or name of the node allocation.
        id: String,
    },
    /// Change name or additional fields.
    Update {
        /// Id of the node allocation.
        id: String,
        /// New name; empty removes it.
        #[arg(long)]
        name: Option<String>,
        /// Additional field; replaces all of them. Repeatable.
        #[arg(long = "extra", value_name = "NAME=VALUE")]
        extra: Vec<String>,
    },
    /// End a node allocation; its machine must not be in use.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the node allocation.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NodeAllocationCreateArgs {
    /// Name, unique among those of the owner.
    #[arg(long, default_value = "")]
    name: String,
    /// Resource class of the machine.
    #[arg(long, value_name = "CLASS", required_unless_present = "backfill")]
    resource_class: Option<String>,
    /// Trait that the machine must have. Repeatable.
    #[arg(long = "trait", value_name = "TRAIT")]
    traits: Vec<String>,
    /// Id of a machine to choose from; by default all. Repeatable.
    #[arg(long = "candidate", value_name = "MACHINE")]
    candidates: Vec<String>,
    /// Id of a machine that is in use already.
    #[arg(long, value_name = "MACHINE", conflicts_with = "candidates")]
    backfill: Option<String>,
    /// Additional field. Repeatable.
    #[arg(long = "extra", value_name = "NAME=VALUE")]
    extra: Vec<String>,
}

pub(crate) async fn run(app: &App, command: NodeAllocationCommand) -> Result<()> {
    match command {
        NodeAllocationCommand::Create(args) => create(app, args).await,
        NodeAllocationCommand::Ls => app.output.list(&all(app).await?),
        NodeAllocationCommand::Show { id } => {
            let request = NodeAllocationServiceGetRequest {
                project: app.need_project().await?,
                allocation: id,
            };
            let answer = app.client.node_allocations().get(request).await?;
            app.output.one(&given(answer.into_inner().node_allocation)?)
        }
        NodeAllocationCommand::Update { id, name, extra } => {
            let fields = pairs(&extra)?;
            let request = NodeAllocationServiceUpdateRequest {
                project: app.need_project().await?,
                id,
                update_meta: server_lock(),
                name,
                extra: (!fields.is_empty()).then_some(NodeAllocationExtra { fields }),
            };
            let answer = app.client.node_allocations().update(request).await?;
            app.output.one(&given(answer.into_inner().node_allocation)?)
        }
        NodeAllocationCommand::Rm { id } => remove(app, id).await,
    }
}

async fn create(app: &App, args: NodeAllocationCreateArgs) -> Result<()> {
    let wish = Some(NodeAllocationWish {
        name: args.name,
        resource_class: args.resource_class.unwrap_or_default(),
        traits: args.traits,
        candidates: args.candidates,
        backfill: args.backfill,
        extra: pairs(&args.extra)?,
    });
    let made = if let Some(project) = app.project().await? {
        let request = NodeAllocationServiceCreateRequest { project, wish };
        let answer = app.client.node_allocations().create(request).await?;
        answer.into_inner().node_allocation
    } else {
        let request = OperatorNodeAllocationServiceCreateRequest { owner: None, wish };
        let answer = app
            .client
            .operator_node_allocations()
            .create(request)
            .await?;
        answer.into_inner().node_allocation
    };
    app.output.one(&given(made)?)
}

async fn all(app: &App) -> Result<Vec<NodeAllocation>> {
    if let Some(project) = app.project().await? {
        let request = NodeAllocationServiceListRequest { project };
        let answer = app.client.node_allocations().list(request).await?;
        return Ok(answer.into_inner().node_allocations);
    }
    let request = OperatorNodeAllocationServiceListRequest {};
    let answer = app.client.operator_node_allocations().list(request).await?;
    Ok(answer.into_inner().node_allocations)
}

async fn remove(app: &App, id: String) -> Result<()> {
    let gone = if let Some(project) = app.project().await? {
        let request = NodeAllocationServiceRemoveRequest { project, id };
        let answer = app.client.node_allocations().remove(request).await?;
        answer.into_inner().node_allocation
    } else {
        let request = OperatorNodeAllocationServiceRemoveRequest { id };
        let answer = app
            .client
            .operator_node_allocations()
            .remove(request)
            .await?;
        answer.into_inner().node_allocation
    };
    app.output.one(&given(gone)?)
}
