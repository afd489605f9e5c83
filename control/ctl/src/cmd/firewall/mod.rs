//! `metalmesh firewall`.

mod calls;
mod differences;
mod effects;
mod explain;
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
    /// Show what a firewall has counted: accounting, drops, and hits of each rule.
    Show(show::ShowArgs),
    /// Show which rule decides about a new flow through a firewall.
    Explain(explain::ExplainArgs),
}

pub(crate) async fn run(app: &App, command: FirewallCommand) -> Result<()> {
    match command {
        FirewallCommand::Rules(command) => rules::run(app, command).await,
        FirewallCommand::Show(args) => show::run(app, args).await,
        FirewallCommand::Explain(args) => explain::run(app, args).await,
    }
}
