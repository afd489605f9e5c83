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
mod capability;
mod create;
mod details;
pub(crate) mod issues;
mod lease;
mod lease_end;
mod owner;
pub(crate) mod wait;

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::text::{enum_value, parse_duration};
use wait::WaitGoal;

/// Default limit of `--wait`, enough for an installation.
const WAIT_DEFAULT: &str = "30m";

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// Allocate a machine and install it.
    #[command(visible_alias = "allocate")]
    Create(Box<create::MachineCreateArgs>),
    /// List the machines of the project, or all machines with --all.
    #[command(visible_alias = "list")]
    Ls {
        /// Only machines in this partition.
        #[arg(long)]
        partition: Option<String>,
        /// Only machines of this size.
        #[arg(long)]
        size: Option<String>,
    },
    /// Show a machine: state and reason, hardware, networks, events.
    #[command(visible_alias = "describe")]
    Show {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
    },
    /// Change an allocated machine's description or labels.
    Update {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
        /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
    },
    /// Free a machine: it is powered off and wiped, then can be allocated again.
    #[command(visible_aliases = ["delete", "rm"])]
    Free {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Control power, boot device and identify LED through the BMC.
    Power {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// Command for the BMC.
        #[arg(ignore_case = true)]
        command: PowerArg,
        /// Wait until the BMC carried out the order, as an administrator; an error gives the reason
        /// of a failure.
        #[arg(long)]
        wait: bool,
    },
    /// List the provisioning events of a machine.
    Events {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
    },
    /// List the issues of machines, or explain those of one machine, as an administrator.
    Issues(issues::MachineIssuesArgs),
    /// Take a machine out of the pool or put it back, as an administrator.
    SetState {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// State: available, locked or tainted.
        state: String,
        /// Reason, shown with the machine.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Show the BMC of a machine, or all BMCs, as they report themselves; never a password.
    Bmc {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: Option<String>,
    },
    /// Confirm the BMC of a machine that several BMCs claim or whose BMC moved, as an administrator:
    /// orders go to that BMC from now on.
    ConfirmBmc {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// Address of the BMC, with or without a port; `machine issues` shows those that claim it.
        address: String,
    },
    /// Set, clear or transfer the owner of a machine: the project that administers it.
    #[command(subcommand)]
    Owner(owner::MachineOwnerCommand),
    /// Lease machines: grant, extend, transfer and end leases, and show them.
    #[command(subcommand)]
    Lease(lease::MachineLeaseCommand),
    /// Set resource class and traits of a machine, by which node allocations choose it.
    Capability(capability::MachineCapabilityArgs),
    /// Show the console password of an allocated machine, as an administrator.
    ConsolePassword {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// Reason for the audit trail, at least 10 characters.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Wait until the operation is complete, and show each step.
    #[arg(long)]
    wait: bool,
    /// Longest time to wait.
    #[arg(long, default_value = WAIT_DEFAULT, value_parser = parse_duration)]
    timeout: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PowerArg {
    /// Power on.
    On,
    /// Power off.
    Off,
    /// Reset without a power cycle.
    Reset,
    /// Power off, then on.
    Cycle,
    /// Boot into the firmware's setup menu.
    Bios,
    /// Boot from disk from now on.
    Disk,
    /// Boot from the network from now on.
    Pxe,
    /// Turn the identify LED on.
    LedOn,
    /// Turn the identify LED off.
    LedOff,
}

impl PowerArg {
    /// The contract's short name of the command. It differs from the name on the command line.
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

pub(crate) async fn run(app: &App, command: MachineCommand) -> Result<()> {
    match command {
        MachineCommand::Create(create) => create::make(app, *create).await,
        MachineCommand::Ls { partition, size } => {
            let query = MachineQuery {
                partition,
                size,
                ..Default::default()
            };
            app.output.list(&app.machines(query).await?)
        }
        MachineCommand::Show { machine } => {
            let machine = app.machine(&app.machine_id(&machine).await?).await?;
            app.output.one_with(&machine, details::print)
        }
        MachineCommand::Update {
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
        MachineCommand::Free { machine, wait } => free(app, &machine, wait).await,
        MachineCommand::Power {
            machine,
            command,
            wait,
        } => power(app, &machine, command, wait).await,
        MachineCommand::Events { machine } => {
            let machine = app.machine(&app.machine_id(&machine).await?).await?;
            let events = machine
                .recent_provisioning_events
                .unwrap_or_default()
                .events;
            app.output.list(&events)
        }
        MachineCommand::Issues(command) => issues::show(app, command).await,
        MachineCommand::SetState {
            machine,
            state,
            reason,
        } => set_state(app, &machine, &state, reason).await,
        MachineCommand::Bmc { machine } => bmc::show(app, machine.as_deref()).await,
        MachineCommand::ConfirmBmc { machine, address } => {
            bmc::confirm(app, &machine, address).await
        }
        MachineCommand::Owner(command) => owner::run(app, command).await,
        MachineCommand::Lease(command) => lease::run(app, command).await,
        MachineCommand::Capability(command) => capability::set(app, command).await,
        MachineCommand::ConsolePassword { machine, reason } => {
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

async fn free(app: &App, machine: &str, wait: WaitArgs) -> Result<()> {
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
    match wait::until(app, &uuid, WaitGoal::Waiting, wait.timeout).await {
        Ok(machine) => app.output.one(&machine),
        // A freed machine leaves its project, so the tenant's next read is refused with NOT_FOUND.
        // That is the end of a successful wait.
        Err(error) if wait::is_gone(&error) => app.output.one(&given(freed)?),
        Err(error) => Err(error),
    }
}

async fn power(app: &App, machine: &str, power: PowerArg, wait: bool) -> Result<()> {
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
        noteln!("task {task} created");
        return Ok(());
    }
    wait::until_done(app, &task).await
}
