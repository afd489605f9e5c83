//! `metalmesh pool host`.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    HostTaint, PoolHost, PoolServiceCleanHostRequest, PoolServiceClearHostHoldRequest,
    PoolServiceListHostsRequest, PoolServiceRemoveHostRequest, PoolServiceSetHostHoldRequest,
    PoolServiceSetHostRequest,
};

use super::hold::HostHoldArgs;
use crate::app::App;
use crate::cmd::given;
use crate::text::pairs;

#[derive(Debug, Subcommand)]
pub(crate) enum PoolHostCommand {
    /// List the hosts of a pool, or of all pools.
    #[command(visible_alias = "list")]
    Ls {
        /// Id of the pool.
        pool: Option<String>,
    },
    /// Put a machine into a pool, or change it as a host; what is left out stays.
    Set(Box<HostSetArgs>),
    /// Take a machine out of its pool.
    Rm {
        /// Id of the machine.
        machine: String,
        /// Also if a claim has it, which loses it.
        #[arg(long)]
        force: bool,
    },
    /// Keep a host off, whatever its claim says.
    Hold {
        /// Id of the machine.
        machine: String,
        #[command(flatten)]
        hold: HostHoldArgs,
        /// Why, free text.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// End a hold of the same actor.
    Unhold {
        /// Id of the machine.
        machine: String,
        #[command(flatten)]
        hold: HostHoldArgs,
    },
    /// Have a host wiped again, which ends its quarantine.
    Clean {
        /// Id of the machine.
        machine: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct HostSetArgs {
    /// Id of the machine.
    machine: String,
    /// Id of the pool; required for a machine that is in none.
    #[arg(long)]
    pool: Option<String>,
    /// Label; all of them are replaced. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Annotation, a text by which nothing is decided; all of them are replaced. Repeatable.
    #[arg(long = "annotation", value_name = "NAME=VALUE")]
    annotations: Vec<String>,
    /// Taint; all of them are replaced. Repeatable.
    #[arg(long = "taint", value_name = "KEY[=VALUE]")]
    taints: Vec<String>,
    /// Remove all taints.
    #[arg(long, conflicts_with = "taints")]
    no_taints: bool,
    /// Failure domain, as projects see it.
    #[arg(long, value_name = "NAME")]
    failure_domain: Option<String>,
    /// Give the host no new claim, for this reason.
    #[arg(long, value_name = "REASON")]
    cordon: Option<String>,
    /// Give the host claims again.
    #[arg(long, conflicts_with = "cordon")]
    uncordon: bool,
}

pub(super) async fn run(app: &App, command: PoolHostCommand) -> Result<()> {
    let mut pools = app.client.pools();
    let host = match command {
        PoolHostCommand::Ls { pool } => {
            let request = PoolServiceListHostsRequest {
                pool: pool.unwrap_or_default(),
            };
            let answer = pools.list_hosts(request).await?.into_inner();
            return app.output.list(&answer.hosts);
        }
        PoolHostCommand::Set(set) => change(app, *set).await?,
        PoolHostCommand::Rm { machine, force } => {
            let request = PoolServiceRemoveHostRequest { machine, force };
            pools.remove_host(request).await?.into_inner().host
        }
        PoolHostCommand::Hold {
            machine,
            hold,
            reason,
        } => {
            let request = PoolServiceSetHostHoldRequest {
                machine,
                actor: hold.actor.name().to_owned(),
                key: hold.key,
                reason,
            };
            pools.set_host_hold(request).await?.into_inner().host
        }
        PoolHostCommand::Unhold { machine, hold } => {
            let request = PoolServiceClearHostHoldRequest {
                machine,
                actor: hold.actor.name().to_owned(),
                key: hold.key,
            };
            pools.clear_host_hold(request).await?.into_inner().host
        }
        PoolHostCommand::Clean { machine } => {
            let request = PoolServiceCleanHostRequest { machine };
            pools.clean_host(request).await?.into_inner().host
        }
    };
    app.output.one(&given(host)?)
}

/// Reads a host, changes what the flags name, and writes it if nobody changed it meanwhile.
async fn change(app: &App, set: HostSetArgs) -> Result<Option<PoolHost>> {
    let mut pools = app.client.pools();
    let request = PoolServiceListHostsRequest {
        pool: String::new(),
    };
    let hosts = pools.list_hosts(request).await?.into_inner().hosts;
    let known = hosts.into_iter().find(|host| host.machine == set.machine);
    let known = known.unwrap_or_default();
    let labels = pairs(&set.labels)?;
    let annotations = pairs(&set.annotations)?;
    let taints: Vec<HostTaint> = set.taints.iter().map(|flag| taint(flag)).collect();
    let request = PoolServiceSetHostRequest {
        machine: set.machine,
        pool: set.pool.unwrap_or(known.pool),
        labels: if labels.is_empty() {
            known.labels
        } else {
            labels
        },
        annotations: if annotations.is_empty() {
            known.annotations
        } else {
            annotations
        },
        taints: match (set.no_taints, taints.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => known.taints,
            (false, false) => taints,
        },
        failure_domain: set.failure_domain.unwrap_or(known.failure_domain),
        only: known.only,
        cordon: match set.uncordon {
            true => String::new(),
            false => set.cordon.unwrap_or(known.cordon),
        },
        expected_generation: Some(known.generation),
    };
    Ok(pools.set_host(request).await?.into_inner().host)
}

fn taint(flag: &str) -> HostTaint {
    let (key, value) = flag.split_once('=').unwrap_or((flag, ""));
    HostTaint {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}
