//! `metalmesh firewall`.

mod calls;
mod differences;
mod effects;
mod explain;
mod list;
mod release;
mod roll;
mod rollout;
mod rules;
mod rules_file;
mod service;
mod show;
mod write_note;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum FirewallCommand {
    /// Manage sets of rules: of a firewall, or of a private network and so of all its firewalls.
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// List the firewalls of the project, or with --operator of all projects: which is active, its
    /// health, and how far its routes keep.
    #[command(visible_alias = "list")]
    Ls(list::ListArgs),
    /// Show a firewall: its role, its health, what it says of its routes, and what it has counted.
    #[command(visible_alias = "describe")]
    Show(show::ShowArgs),
    /// Show which rule decides about a new flow through a firewall.
    Explain(explain::ExplainArgs),
    /// Name the release of the agent that all firewalls are to run.
    #[command(subcommand)]
    Release(release::FirewallReleaseCommand),
    /// Roll a release of the agent out in waves, which stop by themselves.
    #[command(subcommand)]
    Rollout(rollout::FirewallRolloutCommand),
    /// Replace a firewall by a new one, which takes its place once it is healthy and has its rules.
    /// A roll that was interrupted goes on when the command is run again.
    Roll(Box<roll::RollArgs>),
}

pub(crate) async fn run(app: &App, command: FirewallCommand) -> Result<()> {
    match command {
        FirewallCommand::Rules(command) => rules::run(app, command).await,
        FirewallCommand::Ls(args) => list::run(app, &args).await,
        FirewallCommand::Show(args) => show::run(app, args).await,
        FirewallCommand::Explain(args) => explain::run(app, args).await,
        FirewallCommand::Release(command) => release::run(app, command).await,
        FirewallCommand::Rollout(command) => rollout::run(app, command).await,
        FirewallCommand::Roll(args) => roll::run(app, &args).await,
    }
}
