//! Calls about one set, of the operator or of a project.

use anyhow::{Context as _, Result};
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    FirewallRuleContent, FirewallRules, FirewallRulesEffect, FirewallRulesServiceGetRequest,
    FirewallRulesServiceGetResponse, FirewallRulesServiceGetStatisticsRequest,
    FirewallRulesServiceGetStatisticsResponse, FirewallRulesServiceListHistoryRequest,
    FirewallRulesServiceListHistoryResponse, FirewallRulesServiceRemoveRequest,
    FirewallRulesServiceRemoveResponse, FirewallRulesServiceRollBackRequest,
    FirewallRulesServiceRollBackResponse, FirewallRulesServiceSetRequest,
    FirewallRulesServiceSetResponse, FirewallRulesServiceTryRequest,
    FirewallRulesServiceTryResponse, FirewallStatistics,
};

use super::service::RulesService;
use super::write_note::WriteNote;
use crate::app::App;
use crate::cmd::given;

/// The set that a command is about.
#[derive(Debug, Args)]
pub(crate) struct RuleSetArgs {
    #[command(flatten)]
    target: RuleTargetArgs,
    /// The operator's rules, which come before the project's; needs an administrator.
    #[arg(long)]
    operator: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct RuleTargetArgs {
    /// The rules of this firewall, by id or name.
    #[arg(long, value_name = "MACHINE")]
    firewall: Option<String>,
    /// The rules of this private network, for each firewall of its project in it.
    #[arg(long, value_name = "NETWORK")]
    network: Option<String>,
}

/// A set of rules, resolved.
pub(super) struct RuleSetCalls<'a> {
    service: RulesService<'a>,
    firewall: String,
    network: String,
}

impl<'a> RuleSetCalls<'a> {
    /// Resolves names.
    pub(super) async fn of(app: &'a App, args: RuleSetArgs) -> Result<Self> {
        let firewall = match &args.target.firewall {
            Some(machine) => app.machine_id(machine).await?,
            None => String::new(),
        };
        Ok(Self {
            service: RulesService::of(app, args.operator).await?,
            firewall,
            network: args.target.network.unwrap_or_default(),
        })
    }

    /// The revision in force, and what its firewalls report.
    pub(super) async fn get(&self) -> Result<FirewallRulesServiceGetResponse> {
        let request = FirewallRulesServiceGetRequest {
            project: self.service.project.clone(),
            firewall: self.firewall.clone(),
            network: self.network.clone(),
            owner: String::new(),
        };
        self.service.call("Get", &request).await
    }

    /// The revision in force. `None` means that there is none yet.
    pub(super) async fn find(&self) -> Result<Option<FirewallRules>> {
        match self.get().await {
            Ok(found) => Ok(Some(given(found.rules)?)),
            Err(error) => match error.downcast_ref::<tonic::Status>() {
                Some(status) if status.code() == tonic::Code::NotFound => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Writes a content.
    pub(super) async fn set(
        &self,
        content: FirewallRuleContent,
        note: WriteNote,
    ) -> Result<FirewallRules> {
        let request = FirewallRulesServiceSetRequest {
            project: self.service.project.clone(),
            firewall: self.firewall.clone(),
            network: self.network.clone(),
            expected_revision: note.expected,
            comment: note.comment,
            content: Some(content),
        };
        let answer: FirewallRulesServiceSetResponse = self.service.call("Set", &request).await?;
        given(answer.rules)
    }

    /// Asks the firewalls that run for the effect of a content.
    pub(super) async fn effects(
        &self,
        content: FirewallRuleContent,
    ) -> Result<Vec<FirewallRulesEffect>> {
        let request = FirewallRulesServiceTryRequest {
            project: self.service.project.clone(),
            firewall: self.firewall.clone(),
            network: self.network.clone(),
            content: Some(content),
        };
        let answer: FirewallRulesServiceTryResponse = self.service.call("Try", &request).await?;
        Ok(answer.firewalls)
    }

    /// The counters of a firewall.
    pub(super) async fn statistics(&self, firewall: &str) -> Result<FirewallStatistics> {
        statistics(&self.service, firewall).await
    }

    /// All revisions, or with a number that one with its content.
    pub(super) async fn history(&self, revision: u64) -> Result<Vec<FirewallRules>> {
        let request = FirewallRulesServiceListHistoryRequest {
            project: self.service.project.clone(),
            firewall: self.firewall.clone(),
            network: self.network.clone(),
            owner: String::new(),
            revision,
        };
        let answer: FirewallRulesServiceListHistoryResponse =
            self.service.call("ListHistory", &request).await?;
        Ok(answer.revisions)
    }

    /// One revision with its content.
    pub(super) async fn revision(&self, number: u64) -> Result<FirewallRules> {
        let found = self.history(number).await?.into_iter().next();
        found.context("the server answered without the revision")
    }

    /// Brings the content of a revision back.
    pub(super) async fn roll_back(&self, revision: u64, note: WriteNote) -> Result<FirewallRules> {
        let request = FirewallRulesServiceRollBackRequest {
            project: self.service.project.clone(),
            firewall: self.firewall.clone(),
            network: self.network.clone(),
            expected_revision: note.expected,
            comment: note.comment,
            revision,
        };
        let answer: FirewallRulesServiceRollBackResponse =
            self.service.call("RollBack", &request).await?;
        given(answer.rules)
    }

    /// Deletes the set.
    pub(super) async fn remove(&self, expected_revision: Option<u64>) -> Result<FirewallRules> {
        let request = FirewallRulesServiceRemoveRequest {
            project: self.service.project.clone(),
            firewall: self.firewall.clone(),
            network: self.network.clone(),
            expected_revision,
        };
        let answer: FirewallRulesServiceRemoveResponse =
            self.service.call("Remove", &request).await?;
        given(answer.rules)
    }
}

/// The counters of a firewall.
pub(super) async fn statistics(
    service: &RulesService<'_>,
    firewall: &str,
) -> Result<FirewallStatistics> {
    let request = FirewallRulesServiceGetStatisticsRequest {
        project: service.project.clone(),
        firewall: firewall.to_owned(),
    };
    let answer: FirewallRulesServiceGetStatisticsResponse =
        service.call("GetStatistics", &request).await?;
    given(answer.statistics)
}
