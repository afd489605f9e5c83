//! `metalmesh machine capability`.

use anyhow::Result;
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    CapabilityChange, LeaseServiceSetCapabilityRequest, OperatorLeaseServiceSetCapabilityRequest,
};

use crate::app::App;
use crate::cmd::given;

#[derive(Debug, Args)]
pub(crate) struct MachineCapabilityArgs {
    /// Id of the machine.
    machine: String,
    /// Resource class, for example baremetal.
    #[arg(long, value_name = "CLASS")]
    resource_class: Option<String>,
    /// Remove the resource class.
    #[arg(long, conflicts_with = "resource_class")]
    no_resource_class: bool,
    /// Add a trait: CUSTOM_ and more, or a standard name. Repeatable.
    #[arg(long = "trait", value_name = "TRAIT")]
    add: Vec<String>,
    /// Remove a trait. Repeatable.
    #[arg(long = "remove-trait", value_name = "TRAIT")]
    remove: Vec<String>,
    /// Remove all traits before those of --trait are added.
    #[arg(long, conflicts_with = "remove")]
    clear_traits: bool,
}

/// Sets resource class and traits: of a machine of the chosen project, or of any without one.
pub(super) async fn set(app: &App, args: MachineCapabilityArgs) -> Result<()> {
    let class = args.resource_class;
    let change = Some(CapabilityChange {
        resource_class: class.or_else(|| args.no_resource_class.then(String::new)),
        clear_traits: args.clear_traits,
        add_traits: args.add,
        remove_traits: args.remove,
    });
    let machine = if let Some(project) = app.project().await? {
        let request = LeaseServiceSetCapabilityRequest {
            project,
            machine: args.machine,
            change,
        };
        let mut leases = app.client.leases();
        leases.set_capability(request).await?.into_inner().machine
    } else {
        let request = OperatorLeaseServiceSetCapabilityRequest {
            machine: app.machine_id(&args.machine).await?,
            change,
        };
        let mut leases = app.client.operator_leases();
        leases.set_capability(request).await?.into_inner().machine
    };
    app.output.one(&given(machine)?)
}
