//! `metalmesh firewall rollout`: a release of the firewalls' agent, in waves.

use anyhow::Result;
use clap::Subcommand;
use proto_public::metalmesh::admin::v1::RolloutKind;

use crate::app::App;
use crate::cmd::rollout::{RolloutAction, RolloutPlanArgs, RolloutStatusArgs, act};

#[derive(Debug, Subcommand)]
pub(crate) enum FirewallRolloutCommand {
    /// Tell firewalls of a release in waves: standbys first, and the next wave when all before it have
    /// run the release healthily for a time. Too many failures stop it.
    Start(Box<RolloutPlanArgs>),
    /// Show the wave, the standing of each firewall, and why a rollout stopped.
    #[command(visible_alias = "describe")]
    Status(RolloutStatusArgs),
    /// Let no further wave begin until the rollout is resumed.
    Pause,
    /// Let a stopped rollout go on: firewalls that failed are forgiven, and all of the wave get its time
    /// once more.
    Resume {
        /// Most firewalls that may fail from now on. Default: as before.
        #[arg(long, value_name = "NUMBER")]
        failures: Option<u32>,
    },
    /// End a rollout: its firewalls are told of the release from before, and run it if it permits a
    /// downgrade.
    Abort,
}

pub(super) async fn run(app: &App, command: FirewallRolloutCommand) -> Result<()> {
    let action = match command {
        FirewallRolloutCommand::Start(args) => RolloutAction::Set(args),
        FirewallRolloutCommand::Status(args) => RolloutAction::Show(args),
        FirewallRolloutCommand::Pause => RolloutAction::Pause,
        FirewallRolloutCommand::Resume { failures } => RolloutAction::Resume { failures },
        FirewallRolloutCommand::Abort => RolloutAction::Abort,
    };
    act(app, RolloutKind::Firewall, action).await
}
