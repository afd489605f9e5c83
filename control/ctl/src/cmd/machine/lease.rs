//! `metalmesh machine lease`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    Lease, LeaseServiceDecideTransferRequest, LeaseServiceEndRequest, LeaseServiceExtendRequest,
    LeaseServiceGetRequest, LeaseServiceGrantRequest, LeaseServiceListRequest,
    LeaseServiceRequestTransferRequest, OperatorLeaseServiceEndRequest,
    OperatorLeaseServiceGetRequest, OperatorLeaseServiceListRequest, TenuredMachine,
};

use crate::app::App;
use crate::cmd::given;
use crate::text::parse_duration;

use super::lease_end::{LeaseEndArgs, parse_time};

#[derive(Debug, Subcommand)]
pub(crate) enum MachineLeaseCommand {
    /// Lease a machine of the project to another project until a date.
    Grant(LeaseGrantArgs),
    /// Make a lease longer, as the owner or as the lessee within the owner's limit.
    Extend(LeaseExtendArgs),
    /// Hand a leased machine back; it is released and wiped.
    HandBack {
        /// Id of the machine.
        machine: String,
        /// Reason, for the machine's events.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Take a lease back that its lessee does not use yet, as the owner.
    Withdraw {
        /// Id of the machine.
        machine: String,
    },
    /// End a lease before its date, as an administrator; the machine is released and wiped.
    End {
        /// Machine: its id, the name of its allocation, or the beginning of its id.
        machine: String,
        /// Reason, for the machine's events.
        #[arg(long)]
        reason: String,
    },
    /// Ask the owner for another lessee, or take the request back, as the lessee.
    Transfer {
        /// Id of the machine.
        machine: String,
        /// The next lessee, by id or name of the project.
        #[arg(long, value_name = "PROJECT", required_unless_present = "cancel")]
        to: Option<String>,
        /// Take the request back.
        #[arg(long, conflicts_with = "to")]
        cancel: bool,
    },
    /// Consent to the lessee that is asked for, or refuse it, as the owner.
    Consent {
        /// Id of the machine.
        machine: String,
        /// The project that the lessee asks for, by id or name.
        #[arg(long, value_name = "PROJECT")]
        to: String,
        /// Refuse it.
        #[arg(long)]
        refuse: bool,
    },
    /// Show whose a machine is, and its lease.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the machine.
        machine: String,
    },
    /// List the machines that the project owns or leases, or with --all those of every project.
    #[command(visible_alias = "list")]
    Ls,
}

#[derive(Debug, Args)]
pub(crate) struct LeaseGrantArgs {
    /// Id of the machine.
    machine: String,
    /// The lessee, by id or name of the project.
    #[arg(long, value_name = "PROJECT")]
    to: String,
    #[command(flatten)]
    end: LeaseEndArgs,
    /// The lessee may extend the lease up to this time: 2027-01-31 or 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    extendable_until: Option<String>,
    /// Time between the warning and the end; a day by default.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    warn: Option<Duration>,
    /// Comment, which the lessee sees.
    #[arg(long, default_value = "")]
    comment: String,
}

#[derive(Debug, Args)]
pub(crate) struct LeaseExtendArgs {
    /// Id of the machine.
    machine: String,
    #[command(flatten)]
    end: LeaseEndArgs,
    /// The lessee may extend the lease up to this time, as the owner.
    #[arg(long, value_name = "TIME")]
    extendable_until: Option<String>,
    /// Only the owner may extend the lease from now on, as the owner.
    #[arg(long, conflicts_with = "extendable_until")]
    not_extendable: bool,
}

pub(super) async fn run(app: &App, command: MachineLeaseCommand) -> Result<()> {
    match command {
        MachineLeaseCommand::Grant(args) => show_lease(app, grant(app, args).await?),
        MachineLeaseCommand::Extend(args) => show_lease(app, extend(app, args).await?),
        MachineLeaseCommand::HandBack { machine, reason } => end(app, machine, reason).await,
        MachineLeaseCommand::Withdraw { machine } => end(app, machine, String::new()).await,
        MachineLeaseCommand::End { machine, reason } => {
            let request = OperatorLeaseServiceEndRequest {
                machine: app.machine_id(&machine).await?,
                lease: None,
                reason,
            };
            let mut leases = app.client.operator_leases();
            show_lease(app, leases.end(request).await?.into_inner().lease)
        }
        MachineLeaseCommand::Transfer { machine, to, .. } => {
            let to = match to {
                Some(to) => Some(app.project_id(&to).await?),
                None => None,
            };
            let request = LeaseServiceRequestTransferRequest {
                project: app.need_project().await?,
                machine,
                lease: None,
                to,
            };
            let mut leases = app.client.leases();
            let answer = leases.request_transfer(request).await?.into_inner();
            show_lease(app, answer.lease)
        }
        MachineLeaseCommand::Consent {
            machine,
            to,
            refuse,
        } => {
            let request = LeaseServiceDecideTransferRequest {
                project: app.need_project().await?,
                machine,
                lease: None,
                to: app.project_id(&to).await?,
                consent: !refuse,
            };
            let mut leases = app.client.leases();
            let answer = leases.decide_transfer(request).await?.into_inner();
            show_lease(app, answer.lease)
        }
        MachineLeaseCommand::Show { machine } => show(app, machine).await,
        MachineLeaseCommand::Ls => app.output.list(&machines(app).await?),
    }
}

fn show_lease(app: &App, lease: Option<Lease>) -> Result<()> {
    app.output.one(&given(lease)?)
}

async fn grant(app: &App, args: LeaseGrantArgs) -> Result<Option<Lease>> {
    let end = args.end.time()?;
    let limit = args.extendable_until.as_deref().map(parse_time);
    let request = LeaseServiceGrantRequest {
        project: app.need_project().await?,
        machine: args.machine,
        lessee: app.project_id(&args.to).await?,
        expires_at: Some(end.context("a lease needs an end: --until TIME or --for DURATION")?),
        extendable_until: limit.transpose()?,
        warning: args.warn.map(proto_duration),
        comment: args.comment,
    };
    let answer = app.client.leases().grant(request).await?;
    Ok(answer.into_inner().lease)
}

fn proto_duration(span: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: 0,
    }
}

async fn extend(app: &App, args: LeaseExtendArgs) -> Result<Option<Lease>> {
    let limit = args.extendable_until.as_deref().map(parse_time);
    let request = LeaseServiceExtendRequest {
        project: app.need_project().await?,
        machine: args.machine,
        lease: None,
        expires_at: args.end.time()?,
        extendable_until: limit.transpose()?,
        not_extendable: args.not_extendable,
    };
    let answer = app.client.leases().extend(request).await?;
    Ok(answer.into_inner().lease)
}

async fn end(app: &App, machine: String, reason: String) -> Result<()> {
    let request = LeaseServiceEndRequest {
        project: app.need_project().await?,
        machine,
        lease: None,
        reason,
    };
    let answer = app.client.leases().end(request).await?;
    show_lease(app, answer.into_inner().lease)
}

async fn show(app: &App, machine: String) -> Result<()> {
    let found = if let Some(project) = app.project().await? {
        let request = LeaseServiceGetRequest { project, machine };
        app.client.leases().get(request).await?.into_inner().machine
    } else {
        let machine = app.machine_id(&machine).await?;
        let request = OperatorLeaseServiceGetRequest { machine };
        let mut leases = app.client.operator_leases();
        leases.get(request).await?.into_inner().machine
    };
    app.output.one(&given(found)?)
}

async fn machines(app: &App) -> Result<Vec<TenuredMachine>> {
    if let Some(project) = app.project().await? {
        let request = LeaseServiceListRequest { project };
        let answer = app.client.leases().list(request).await?;
        return Ok(answer.into_inner().machines);
    }
    let request = OperatorLeaseServiceListRequest {};
    let answer = app.client.operator_leases().list(request).await?;
    Ok(answer.into_inner().machines)
}
