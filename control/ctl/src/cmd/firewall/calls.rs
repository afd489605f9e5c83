//! Calls about one set, of the operator or of a project.

use anyhow::{Context as _, Result};
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    FirewallRuleContent, FirewallRules, FirewallRulesOnFirewall, FirewallRulesServiceGetRequest,
    FirewallRulesServiceListHistoryRequest, FirewallRulesServiceRemoveRequest,
    FirewallRulesServiceRollBackRequest, FirewallRulesServiceSetRequest,
    OperatorRulesServiceGetRequest, OperatorRulesServiceListHistoryRequest,
    OperatorRulesServiceRemoveRequest, OperatorRulesServiceRollBackRequest,
    OperatorRulesServiceSetRequest,
};

use crate::app::App;
use crate::cmd::given;

use super::write_note::WriteNote;

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
    app: &'a App,
    firewall: String,
    network: String,
    /// `None` means the operator's rules.
    project: Option<String>,
}

impl<'a> RuleSetCalls<'a> {
    /// Resolves names.
    pub(super) async fn of(app: &'a App, args: RuleSetArgs) -> Result<Self> {
        let firewall = match &args.target.firewall {
            Some(machine) => app.machine_id(machine).await?,
            None => String::new(),
        };
        let project = match args.operator {
            true => None,
            false => Some(app.need_project().await?),
        };
        Ok(Self {
            app,
            firewall,
            network: args.target.network.unwrap_or_default(),
            project,
        })
    }

    /// The revision in force, and what its firewalls report.
    pub(super) async fn get(&self) -> Result<(FirewallRules, Vec<FirewallRulesOnFirewall>)> {
        let (firewall, network) = (self.firewall.clone(), self.network.clone());
        let (rules, firewalls) = match self.project.clone() {
            Some(project) => {
                let request = FirewallRulesServiceGetRequest {
                    project,
                    firewall,
                    network,
                    owner: String::new(),
                };
                let answer = self.app.client.firewall_rules().get(request).await?;
                let answer = answer.into_inner();
                (answer.rules, answer.firewalls)
            }
            None => {
                let request = OperatorRulesServiceGetRequest {
                    firewall,
                    network,
                    owner: String::new(),
                };
                let answer = self.app.client.operator_rules().get(request).await?;
                let answer = answer.into_inner();
                (answer.rules, answer.firewalls)
            }
        };
        Ok((given(rules)?, firewalls))
    }

    /// The revision in force. `None` means that there is none yet.
    pub(super) async fn find(&self) -> Result<Option<FirewallRules>> {
        match self.get().await {
            Ok((rules, _)) => Ok(Some(rules)),
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
        let (firewall, network) = (self.firewall.clone(), self.network.clone());
        let (content, comment) = (Some(content), note.comment);
        let expected_revision = note.expected;
        let rules = match self.project.clone() {
            Some(project) => {
                let request = FirewallRulesServiceSetRequest {
                    project,
                    firewall,
                    network,
                    expected_revision,
                    comment,
                    content,
                };
                let answer = self.app.client.firewall_rules().set(request).await?;
                answer.into_inner().rules
            }
            None => {
                let request = OperatorRulesServiceSetRequest {
                    firewall,
                    network,
                    expected_revision,
                    comment,
                    content,
                };
                let answer = self.app.client.operator_rules().set(request).await?;
                answer.into_inner().rules
            }
        };
        given(rules)
    }

    /// All revisions, or with a number that one with its content.
    pub(super) async fn history(&self, revision: u64) -> Result<Vec<FirewallRules>> {
        let (firewall, network) = (self.firewall.clone(), self.network.clone());
        Ok(match self.project.clone() {
            Some(project) => {
                let request = FirewallRulesServiceListHistoryRequest {
                    project,
                    firewall,
                    network,
                    owner: String::new(),
                    revision,
                };
                let answer = self
                    .app
                    .client
                    .firewall_rules()
                    .list_history(request)
                    .await?;
                answer.into_inner().revisions
            }
            None => {
                let request = OperatorRulesServiceListHistoryRequest {
                    firewall,
                    network,
                    owner: String::new(),
                    revision,
                };
                let answer = self
                    .app
                    .client
                    .operator_rules()
                    .list_history(request)
                    .await?;
                answer.into_inner().revisions
            }
        })
    }

    /// One revision with its content.
    pub(super) async fn revision(&self, number: u64) -> Result<FirewallRules> {
        let found = self.history(number).await?.into_iter().next();
        found.context("the server answered without the revision")
    }

    /// Brings the content of a revision back.
    pub(super) async fn roll_back(&self, revision: u64, note: WriteNote) -> Result<FirewallRules> {
        let (firewall, network) = (self.firewall.clone(), self.network.clone());
        let (comment, expected_revision) = (note.comment, note.expected);
        let rules = match self.project.clone() {
            Some(project) => {
                let request = FirewallRulesServiceRollBackRequest {
                    project,
                    firewall,
                    network,
                    expected_revision,
                    comment,
                    revision,
                };
                let answer = self.app.client.firewall_rules().roll_back(request).await?;
                answer.into_inner().rules
            }
            None => {
                let request = OperatorRulesServiceRollBackRequest {
                    firewall,
                    network,
                    owner: String::new(),
                    expected_revision,
                    comment,
                    revision,
                };
                let answer = self.app.client.operator_rules().roll_back(request).await?;
                answer.into_inner().rules
            }
        };
        given(rules)
    }

    /// Deletes the set.
    pub(super) async fn remove(&self, expected_revision: Option<u64>) -> Result<FirewallRules> {
        let (firewall, network) = (self.firewall.clone(), self.network.clone());
        let rules = match self.project.clone() {
            Some(project) => {
                let request = FirewallRulesServiceRemoveRequest {
                    project,
                    firewall,
                    network,
                    expected_revision,
                };
                let answer = self.app.client.firewall_rules().remove(request).await?;
                answer.into_inner().rules
            }
            None => {
                let request = OperatorRulesServiceRemoveRequest {
                    firewall,
                    network,
                    owner: String::new(),
                    expected_revision,
                };
                let answer = self.app.client.operator_rules().remove(request).await?;
                answer.into_inner().rules
            }
        };
        given(rules)
    }
}
