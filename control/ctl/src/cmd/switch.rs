//! `metalmesh switch`.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{Switch, SwitchPortStatus, SwitchQuery, SwitchReplaceMode};

use super::{given, server_lock};
use crate::app::App;
use crate::output::{TableRow, print_table};
use crate::show::port_actual;
use crate::text::{age, enum_text, or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum SwitchCommand {
    /// List switches.
    #[command(visible_alias = "list")]
    Ls {
        /// Only switches in this partition.
        #[arg(long)]
        partition: Option<String>,
    },
    /// Show a switch and its ports.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the switch.
        id: String,
    },
    /// List the machines at the ports of a switch, or of all switches.
    Machines {
        /// Id of the switch.
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
        SwitchCommand::Ls { partition } => {
            let query = SwitchQuery {
                partition,
                ..Default::default()
            };
            let request = admin::SwitchServiceListRequest { query: Some(query) };
            let answer = app
                .client
                .admin_switches()
                .list(request)
                .await?
                .into_inner();
            app.output.list(&answer.switches)
        }
        SwitchCommand::Show { id } => {
            let request = admin::SwitchServiceGetRequest { id };
            let answer = app.client.admin_switches().get(request).await?.into_inner();
            app.output.one_with(&given(answer.switch)?, details)
        }
        SwitchCommand::Machines { id } => machines(app, id).await,
        SwitchCommand::Replace { id, cancel } => {
            let changed = replace(app, id, cancel).await?;
            app.output.one_with(&changed, details)
        }
        SwitchCommand::Migrate { from, to } => {
            let request = admin::SwitchServiceMigrateRequest {
                old_switch: from,
                new_switch: to,
            };
            let answer = app.client.admin_switches().migrate(request).await?;
            let changed = answer.into_inner().switch;
            app.output.one_with(&given(changed)?, details)
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
            app.output.one_with(&given(answer.switch)?, details)
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

fn details(switch: &Switch) {
    print_table(&Switch::titles(true), [switch.cells(true)]);
    if let Some(error) = switch
        .last_sync_error
        .as_ref()
        .and_then(|sync| sync.error.as_ref())
    {
        let when = age(switch
            .last_sync_error
            .as_ref()
            .and_then(|sync| sync.time.as_ref()));
        outln!("\nlast error {when} ago: {error}");
    }
    outln!();
    let machine_at = |port: &str| {
        let found = switch
            .machine_connections
            .iter()
            .find(|connection| connection.nic.as_ref().is_some_and(|nic| nic.name == port));
        found
            .map(|connection| connection.machine_id.clone())
            .unwrap_or_default()
    };
    let rows = switch.nics.iter().map(|nic| {
        let desired = nic
            .state
            .as_ref()
            .and_then(|state| state.desired)
            .unwrap_or_default();
        vec![
            nic.name.clone(),
            enum_text("metalstack.api.v2.SwitchPortStatus", desired),
            port_actual(nic),
            or_dash(nic.vrf.clone().unwrap_or_default()),
            or_dash(machine_at(&nic.name)),
        ]
    });
    print_table(&["port", "desired", "actual", "segment", "machine"], rows);
}

async fn machines(app: &App, id: Option<String>) -> Result<()> {
    let query = SwitchQuery {
        id,
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
    app.output.list(&answer.into_inner().switches_with_machines)
}
