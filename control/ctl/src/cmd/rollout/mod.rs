//! `metalmesh rollout`: releases of agents, in waves.

mod plan;
mod release_file;
mod status;
mod wave_text;

use anyhow::Result;
use clap::Subcommand;
use proto_public::metalmesh::admin::v1::{
    RolloutKind, RolloutServiceAbortRequest, RolloutServiceClearRequest,
    RolloutServicePauseRequest, RolloutServiceResumeRequest,
};

use crate::app::App;
use crate::cmd::given;

pub(crate) use plan::RolloutPlanArgs;
pub(crate) use release_file::ReleaseFileArgs;
pub(crate) use status::{RolloutStatusArgs, status};

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// The agents of switches, metalmesh-core.
    #[command(subcommand)]
    Core(RolloutAction),
    /// The agents of BMCs, metalmesh-bmc.
    #[command(subcommand)]
    Bmc(RolloutAction),
    /// The boot servers, metalmesh-pixie.
    #[command(subcommand)]
    Pixie(RolloutAction),
    /// The agents of firewalls, metalmesh-firewall. `metalmesh firewall rollout` is the same.
    #[command(subcommand)]
    Firewall(RolloutAction),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutAction {
    /// Name a release of the agents, and tell them of it in waves: the next wave when all before it have
    /// run the release healthily for a time. Too many failures stop the rollout.
    Set(Box<RolloutPlanArgs>),
    /// Show the wave, the standing of each agent, and why a rollout stopped.
    #[command(visible_alias = "describe")]
    Show(RolloutStatusArgs),
    /// Let no further wave begin until the rollout is resumed.
    Pause,
    /// Let a stopped rollout go on: agents that failed are forgiven, and all of the wave get its time
    /// once more.
    Resume {
        /// Most agents that may fail from now on. Default: as before.
        #[arg(long, value_name = "NUMBER")]
        failures: Option<u32>,
    },
    /// End a rollout: its agents are told of the release from before, and run it if it permits a
    /// downgrade.
    Abort,
    /// End the release of all agents: they are told of none, and keep the program that they run. Refused
    /// while a rollout is under way.
    Clear,
}

pub(crate) async fn run(app: &App, command: RolloutCommand) -> Result<()> {
    let (kind, action) = match command {
        RolloutCommand::Core(action) => (RolloutKind::Core, action),
        RolloutCommand::Bmc(action) => (RolloutKind::Bmc, action),
        RolloutCommand::Pixie(action) => (RolloutKind::Pixie, action),
        RolloutCommand::Firewall(action) => (RolloutKind::Firewall, action),
    };
    act(app, kind, action).await
}

/// Carries out an action on the rollout to a kind of agents.
///
/// # Errors
/// Those of the call, and those of the release's file.
pub(crate) async fn act(app: &App, kind: RolloutKind, action: RolloutAction) -> Result<()> {
    let mut client = app.client.rollouts();
    let of_wire = kind.into();
    let rollout = match action {
        RolloutAction::Show(args) => return status(app, kind, &args).await,
        RolloutAction::Set(args) => {
            let answer = client.start(args.request(kind)?).await?;
            answer.into_inner().rollout
        }
        RolloutAction::Pause => {
            let request = RolloutServicePauseRequest { kind: of_wire };
            client.pause(request).await?.into_inner().rollout
        }
        RolloutAction::Resume { failures } => {
            let request = RolloutServiceResumeRequest {
                kind: of_wire,
                failures_max: failures,
            };
            client.resume(request).await?.into_inner().rollout
        }
        RolloutAction::Abort => {
            let request = RolloutServiceAbortRequest { kind: of_wire };
            client.abort(request).await?.into_inner().rollout
        }
        RolloutAction::Clear => {
            let request = RolloutServiceClearRequest { kind: of_wire };
            let cleared = client.clear(request).await?.into_inner().release;
            if let Some(release) = &cleared {
                app.output.one(release)?;
            }
            let name = name_of(kind);
            noteln!("{name} agents are told of no release: they keep the program that they run");
            return Ok(());
        }
    };
    app.output.one(&given(rollout)?)
}

/// Name of a kind of agents on the command line.
pub(super) fn name_of(kind: RolloutKind) -> &'static str {
    match kind {
        RolloutKind::Core => "core",
        RolloutKind::Bmc => "bmc",
        RolloutKind::Pixie => "pixie",
        RolloutKind::Firewall | RolloutKind::Unspecified => "firewall",
    }
}

/// Name of their program in manifests.
pub(super) fn program_of(kind: RolloutKind) -> &'static str {
    match kind {
        RolloutKind::Core => "metalmesh-core",
        RolloutKind::Bmc => "metalmesh-bmc",
        RolloutKind::Pixie => "metalmesh-pixie",
        RolloutKind::Firewall | RolloutKind::Unspecified => "metalmesh-firewall",
    }
}
