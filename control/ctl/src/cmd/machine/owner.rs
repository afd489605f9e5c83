//! `metalmesh machine owner`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::metalmesh::admin::v1::{
    LeaseServiceTransferMachineRequest, OperatorLeaseServiceSetOwnerRequest,
};

use crate::app::App;
use crate::cmd::given;

#[derive(Debug, Subcommand)]
pub(crate) enum MachineOwnerCommand {
    /// Give a machine to the project that administers it from now on, as an administrator.
    Set {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// Project that owns the machine, by id or name.
        owner: String,
    },
    /// Give a machine back to the site, as an administrator.
    Clear {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
    },
    /// Give a machine of the project to another owner; it must be neither leased nor in use.
    Transfer {
        /// Id of the machine.
        machine: String,
        /// The next owner, by id or name of the project.
        #[arg(long, value_name = "PROJECT")]
        to: String,
    },
}

pub(super) async fn run(app: &App, command: MachineOwnerCommand) -> Result<()> {
    match command {
        MachineOwnerCommand::Set { machine, owner } => {
            let owner = app.project_id(&owner).await?;
            set(app, &machine, Some(owner)).await
        }
        MachineOwnerCommand::Clear { machine } => set(app, &machine, None).await,
        MachineOwnerCommand::Transfer { machine, to } => {
            let to = app.project_id(&to).await?;
            let request = LeaseServiceTransferMachineRequest {
                project: app.need_project().await?,
                machine: machine.clone(),
                to: to.clone(),
            };
            app.client.leases().transfer_machine(request).await?;
            if !app.is_dry() {
                noteln!("machine {machine} belongs to project {to} now");
            }
            Ok(())
        }
    }
}

async fn set(app: &App, machine: &str, owner: Option<String>) -> Result<()> {
    let request = OperatorLeaseServiceSetOwnerRequest {
        machine: app.machine_id(machine).await?,
        owner,
    };
    let mut leases = app.client.operator_leases();
    let answer = leases.set_owner(request).await?.into_inner();
    app.output.one(&given(answer.machine)?)
}
