//! `metalmesh machine`.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Machine, MachineQuery, MachineServiceBmcCommandRequest, MachineServiceDeleteRequest,
    MachineServiceUpdateRequest,
};

mod bmc;
mod create;
mod details;
pub(crate) mod issues;
mod wait;

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::{enum_value, parse_duration};
use wait::Goal;

/// How long an installation may take before `--wait` gives up.
const WAIT_DEFAULT: &str = "30m";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Allocate a machine and install it.
    #[command(visible_alias = "allocate")]
    Create(Box<create::Create>),
    /// List machines: the project's, or all with --all.
    #[command(visible_alias = "list")]
    Ls {
        #[arg(long)]
        partition: Option<String>,
        #[arg(long)]
        size: Option<String>,
    },
    /// Show a machine: state and reason, hardware, networks, events.
    #[command(visible_alias = "describe")]
    Show { machine: String },
    /// Change an allocated machine's description or labels.
    Update {
        machine: String,
        #[arg(long)]
        description: Option<String>,
        /// Set (`a=b`) or remove (`a-`) a label.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Give a machine back: it is switched off, wiped, and waits again.
    #[command(visible_aliases = ["delete", "rm"])]
    Free {
        machine: String,
        #[command(flatten)]
        wait: Wait,
    },
    /// Power and boot device through the BMC.
    Power {
        machine: String,
        command: Power,
        /// Wait until the BMC did it, as an administrator; an error says why it did not.
        #[arg(long)]
        wait: bool,
    },
    /// What happened to a machine.
    Events { machine: String },
    /// What is wrong with machines, and with one of them what to do, as an administrator.
    Issues(issues::Issues),
    /// Take a machine out of the pool or put it back, as an administrator.
    SetState {
        machine: String,
        /// available, locked or tainted.
        state: String,
        /// Why.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// The machine's BMC as it reports itself, all without a machine; never a password.
    Bmc { machine: Option<String> },
    /// Say which BMC is the machine's when more than one claims it or when it has moved, as an
    /// administrator: orders go to that one from now on.
    ConfirmBmc {
        machine: String,
        /// Address of the BMC, with or without a port; `machine issues` shows those that claim it.
        address: String,
    },
    /// The password for the console of an allocated machine, as an administrator.
    ConsolePassword {
        machine: String,
        /// Why, 10 characters or more: it goes into the audit trail.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Wait until it is done, showing each step.
    #[arg(long)]
    wait: bool,
    /// How long to wait.
    #[arg(long, default_value = WAIT_DEFAULT, value_parser = parse_duration)]
    timeout: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Power {
    On,
    Off,
    Reset,
    Cycle,
    /// Into the firmware's menu.
    Bios,
    /// From disk from now on.
    Disk,
    /// From the network from now on.
    Pxe,
    LedOn,
    LedOff,
}

impl Power {
    fn short_name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Reset => "reset",
            Self::Cycle => "cycle",
            Self::Bios => "boot-to-bios",
            Self::Disk => "boot-from-disk",
            Self::Pxe => "boot-from-pxe",
            Self::LedOn => "identify-led-on",
            Self::LedOff => "identify-led-off",
        }
    }
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => create::make(app, *create).await,
        Command::Ls { partition, size } => {
            let query = MachineQuery {
                partition,
                size,
                ..Default::default()
            };
            app.output.list(&app.machines(query).await?)
        }
        Command::Show { machine } => {
            let machine = app.machine(&app.machine_id(&machine).await?).await?;
            app.output.one_with(&machine, details::print)
        }
        Command::Update {
            machine,
            description,
            labels,
        } => {
            let request = MachineServiceUpdateRequest {
                uuid: app.machine_id(&machine).await?,
                update_meta: server_lock(),
                project: app.need_project().await?,
                description,
                labels: label_patch(&labels)?,
                ssh_public_keys: Vec::new(),
            };
            let answer = app.client.machines().update(request).await?.into_inner();
            app.output.one(&given(answer.machine)?)
        }
        Command::Free { machine, wait } => free(app, &machine, wait).await,
        Command::Power {
            machine,
            command,
            wait,
        } => power(app, &machine, command, wait).await,
        Command::Events { machine } => {
            let machine = app.machine(&app.machine_id(&machine).await?).await?;
            let events = machine
                .recent_provisioning_events
                .unwrap_or_default()
                .events;
            app.output.list(&events)
        }
        Command::Issues(command) => issues::show(app, command).await,
        Command::SetState {
            machine,
            state,
            reason,
        } => set_state(app, &machine, &state, reason).await,
        Command::Bmc { machine } => bmc::show(app, machine.as_deref()).await,
        Command::ConfirmBmc { machine, address } => bmc::confirm(app, &machine, address).await,
        Command::ConsolePassword { machine, reason } => {
            bmc::console_password(app, &machine, reason).await
        }
    }
}

async fn set_state(app: &App, machine: &str, state: &str, reason: String) -> Result<()> {
    let request = admin::MachineServiceSetStateRequest {
        uuid: app.machine_id(machine).await?,
        state: enum_value("metalstack.api.v2.MachineState", state)?,
        description: reason,
    };
    let mut machines = app.client.admin_machines();
    let answer = machines.set_state(request).await?.into_inner();
    app.output.one(&given(answer.machine)?)
}

async fn free(app: &App, machine: &str, wait: Wait) -> Result<()> {
    let uuid = app.machine_id(machine).await?;
    let freed: Option<Machine> = if let Some(project) = app.project().await? {
        let request = MachineServiceDeleteRequest {
            uuid: uuid.clone(),
            project,
        };
        app.client
            .machines()
            .delete(request)
            .await?
            .into_inner()
            .machine
    } else {
        let request = admin::MachineServiceDeleteRequest { uuid: uuid.clone() };
        app.client
            .admin_machines()
            .delete(request)
            .await?
            .into_inner()
            .machine
    };
    if !wait.wait || app.is_dry() {
        return app.output.one(&given(freed)?);
    }
    match wait::until(app, &uuid, Goal::Waiting, wait.timeout).await {
        Ok(machine) => app.output.one(&machine),
        // A tenant's machine leaves its project when it is free: it is gone from here.
        Err(error) if wait::is_gone(&error) => app.output.one(&given(freed)?),
        Err(error) => Err(error),
    }
}

async fn power(app: &App, machine: &str, power: Power, wait: bool) -> Result<()> {
    let uuid = app.machine_id(machine).await?;
    let command = enum_value("metalstack.api.v2.MachineBMCCommand", power.short_name())?;
    let task = if let Some(project) = app.project().await? {
        let request = MachineServiceBmcCommandRequest {
            uuid,
            project,
            command,
        };
        app.client
            .machines()
            .bmc_command(request)
            .await?
            .into_inner()
            .task_id
    } else {
        let request = admin::MachineServiceBmcCommandRequest { uuid, command };
        app.client
            .admin_machines()
            .bmc_command(request)
            .await?
            .into_inner()
            .task_id
    };
    if app.is_dry() {
        return Ok(());
    }
    if !wait {
        noteln!("ordered as task {task}");
        return Ok(());
    }
    wait::until_done(app, &task).await
}
