//! `metalmesh firewall`.

mod calls;
mod differences;
mod explain;
mod rules;
mod rules_file;
mod write_note;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum FirewallCommand {
    /// Manage sets of rules: of a firewall, or of a private network and so of all its firewalls.
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Show which rule decides about a new flow through a firewall.
    Explain(explain::ExplainArgs),
}

pub(crate) async fn run(app: &App, command: FirewallCommand) -> Result<()> {
    match command {
        FirewallCommand::Rules(command) => rules::run(app, command).await,
        FirewallCommand::Explain(args) => explain::run(app, args).await,
    }
}
