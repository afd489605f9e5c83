//! `metalmesh firewall ls`.

use anyhow::Result;
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    FirewallRulesServiceListFirewallsRequest, FirewallRulesServiceListFirewallsResponse,
    FirewallStatus,
};

use super::service::RulesService;
use crate::app::App;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List as an administrator, those of all projects.
    #[arg(long)]
    operator: bool,
}

pub(crate) async fn run(app: &App, args: &ListArgs) -> Result<()> {
    let service = RulesService::of(app, args.operator).await?;
    app.output.list(&firewalls(&service).await?)
}

/// The firewalls of the service's project, or of all.
pub(super) async fn firewalls(service: &RulesService<'_>) -> Result<Vec<FirewallStatus>> {
    let request = FirewallRulesServiceListFirewallsRequest {
        project: service.project.clone(),
    };
    let answer: FirewallRulesServiceListFirewallsResponse =
        service.call("ListFirewalls", &request).await?;
    Ok(answer.firewalls)
}
