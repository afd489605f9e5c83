//! `metalmesh switch`.

mod fabric;
mod list;
mod plan;

use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{Switch, SwitchPortStatus, SwitchQuery, SwitchReplaceMode};

use super::{given, server_lock};
use crate::app::App;

use plan::PlanArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SwitchCommand {
    /// List switches: service, agent, BGP sessions, and how much differs from the desired state.
    #[command(visible_alias = "list")]
    Ls {
        /// Only switches in this partition.
        #[arg(long)]
        partition: Option<String>,
    },
    /// Show a switch: its ports, and what differs from the desired state.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the switch.
        id: String,
    },
    /// List the ports of a switch: desired beside observed place, counters, optics, neighbours.
    Ports {
        /// Id of the switch.
        id: String,
    },
    /// List the BGP sessions of a switch and the sizes of its EVPN tables.
    Bgp {
        /// Id of the switch.
        id: String,
    },
    /// List what is not as desired: pending, failing, blocked, held, drifted or healed lately.
    Diff {
        /// Id of the switch; without it, all switches.
        id: Option<String>,
        /// Only switches in this partition.
        #[arg(long)]
        partition: Option<String>,
    },
    /// Show what a change would do on which switch; nothing is changed.
    Plan(PlanArgs),
    /// Move the traffic of a switch to the other switches of its machines, before an upgrade.
    Drain {
        /// Id of the switch.
        id: String,
        /// Drain it even if another switch is not ready: machines may lose their network.
        #[arg(long)]
        force: bool,
    },
    /// Put a drained switch into service again.
    Undrain {
        /// Id of the switch.
        id: String,
    },
    /// List the machines at the ports of a switch, or of all switches.
    Machines {
        /// Id of the switch; without it, all switches.
        id: Option<String>,
    },
    /// Mark a broken switch for replacement: the next switch that registers under its name gets the
    /// configuration of the other switch of its rack.
    Replace {
        /// Id of the switch.
        id: String,
        /// Cancel the replacement.
        #[arg(long)]
        cancel: bool,
    },
    /// Move all cables to the ports of the same names of another switch of the rack.
    Migrate {
        /// Id of the switch with the cables.
        from: String,
        /// Id of the switch that gets the cables.
        to: String,
    },
    /// Delete a switch; one that is alive comes back when its agent starts.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the switch.
        id: String,
        /// Delete the switch even if machines are connected to it.
        #[arg(long)]
        force: bool,
    },
    /// Set a port up or down.
    Port {
        /// Id of the switch.
        id: String,
        /// Name of the port.
        port: String,
        /// Wanted state of the port.
        #[arg(ignore_case = true)]
        state: PortState,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PortState {
    Up,
    Down,
}

pub(crate) async fn run(app: &App, command: SwitchCommand) -> Result<()> {
    match command {
        SwitchCommand::Ls { partition } => list::run(app, partition).await,
        SwitchCommand::Show { id } => {
            let request = admin::SwitchServiceGetRequest { id };
            let answer = app.client.admin_switches().get(request).await?.into_inner();
            fabric::show(app, given(answer.switch)?).await
        }
        SwitchCommand::Ports { id } => fabric::ports(app, id).await,
        SwitchCommand::Bgp { id } => fabric::bgp(app, id).await,
        SwitchCommand::Diff { id, partition } => fabric::diff(app, id, partition).await,
        SwitchCommand::Plan(change) => plan::run(app, change).await,
        SwitchCommand::Drain { id, force } => fabric::drain(app, id, true, force).await,
        SwitchCommand::Undrain { id } => fabric::drain(app, id, false, false).await,
        SwitchCommand::Machines { id } => machines(app, id).await,
        SwitchCommand::Replace { id, cancel } => {
            let changed = replace(app, id, cancel).await?;
            fabric::show(app, changed).await
        }
        SwitchCommand::Migrate { from, to } => {
            let request = admin::SwitchServiceMigrateRequest {
                old_switch: from,
                new_switch: to,
            };
            let answer = app.client.admin_switches().migrate(request).await?;
            let changed = answer.into_inner().switch;
            fabric::show(app, given(changed)?).await
        }
        SwitchCommand::Rm { id, force } => {
            let request = admin::SwitchServiceDeleteRequest { id, force };
            let answer = app.client.admin_switches().delete(request).await?;
            app.output.one(&given(answer.into_inner().switch)?)
        }
        SwitchCommand::Port { id, port, state } => {
            let status = match state {
                PortState::Up => SwitchPortStatus::Up,
                PortState::Down => SwitchPortStatus::Down,
            };
            let request = admin::SwitchServicePortRequest {
                id,
                nic_name: port,
                status: status.into(),
            };
            let answer = app
                .client
                .admin_switches()
                .port(request)
                .await?
                .into_inner();
            fabric::show(app, given(answer.switch)?).await
        }
    }
}

async fn replace(app: &App, id: String, cancel: bool) -> Result<Switch> {
    let mode = if cancel {
        SwitchReplaceMode::Operational
    } else {
        SwitchReplaceMode::Replace
    };
    let request = admin::SwitchServiceUpdateRequest {
        id,
        update_meta: server_lock(),
        replace_mode: Some(mode.into()),
        ..Default::default()
    };
    let answer = app.client.admin_switches().update(request).await?;
    given(answer.into_inner().switch)
}

async fn machines(app: &App, id: Option<String>) -> Result<()> {
    let query = SwitchQuery {
        id: id.clone(),
        ..Default::default()
    };
    let request = admin::SwitchServiceConnectedMachinesRequest {
        query: Some(query),
        machine_query: None,
    };
    let answer = app
        .client
        .admin_switches()
        .connected_machines(request)
        .await?;
    let found = answer.into_inner().switches_with_machines;
    // A query that matches nothing is no error of the contract.
    if let (Some(id), true) = (id, found.is_empty()) {
        bail!("no switch \"{id}\"; see: metalmesh switch ls");
    }
    app.output.list(&found)
}
