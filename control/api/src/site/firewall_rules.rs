//! Firewall rules of projects.

use control_convert::firewall::from_owner;
use control_convert::parse;
use control_gate::Caller;
use proto_firewall::RuleOwner;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::firewall_rules_service_server::FirewallRulesService;
use proto_types::ProjectId;
use tonic::{Request, Status};

use super::firewall_explain::FlowQuestion;
use super::rules_scope::{RulesNote, RulesScope};
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl FirewallRulesService for Services {
    async fn set(
        &self,
        request: Request<mesh::FirewallRulesServiceSetRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = own(&request.project, &request.firewall, &request.network)?;
        let note = RulesNote {
            comment: request.comment,
            expected: request.expected_revision,
        };
        let made = self.set_rules(&caller, scope, request.content, note);
        let rules = made.await?;
        ok(mesh::FirewallRulesServiceSetResponse { rules })
    }

    async fn roll_back(
        &self,
        request: Request<mesh::FirewallRulesServiceRollBackRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceRollBackResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = own(&request.project, &request.firewall, &request.network)?;
        let note = RulesNote {
            comment: request.comment,
            expected: request.expected_revision,
        };
        let made = self.roll_back_rules(&caller, scope, request.revision, note);
        let rules = made.await?;
        ok(mesh::FirewallRulesServiceRollBackResponse { rules })
    }

    async fn remove(
        &self,
        request: Request<mesh::FirewallRulesServiceRemoveRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = own(&request.project, &request.firewall, &request.network)?;
        let gone = self.remove_rules(&caller, scope, request.expected_revision);
        let rules = gone.await?;
        ok(mesh::FirewallRulesServiceRemoveResponse { rules })
    }

    async fn get(
        &self,
        request: Request<mesh::FirewallRulesServiceGetRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let mut scope = own(&request.project, &request.firewall, &request.network)?;
        scope.set.owner = from_owner(&request.owner, RuleOwner::Tenant)?;
        let found = self.rules_in_force(&caller, &scope).await?;
        ok(mesh::FirewallRulesServiceGetResponse {
            rules: Some(found.rules),
            firewalls: found.firewalls,
        })
    }

    async fn list(
        &self,
        request: Request<mesh::FirewallRulesServiceListRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceListResponse> {
        let caller = Caller::of(&request)?;
        let project = parse("project", &request.get_ref().project)?;
        let rules = self.list_rules(&caller, Some(project)).await?;
        ok(mesh::FirewallRulesServiceListResponse { rules })
    }

    async fn list_history(
        &self,
        request: Request<mesh::FirewallRulesServiceListHistoryRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceListHistoryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let mut scope = own(&request.project, &request.firewall, &request.network)?;
        scope.set.owner = from_owner(&request.owner, RuleOwner::Tenant)?;
        let revisions = self
            .rules_history(&caller, &scope, request.revision)
            .await?;
        ok(mesh::FirewallRulesServiceListHistoryResponse { revisions })
    }

    async fn get_explanation(
        &self,
        request: Request<mesh::FirewallRulesServiceGetExplanationRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceGetExplanationResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = parse("project", &request.project)?;
        let question = FlowQuestion::of(
            &request.firewall,
            &request.from,
            &request.to,
            request.protocol,
            request.port,
        )?;
        let found = self.explain_flow(&caller, &question, Some(project));
        let explanation = Some(found.await?);
        ok(mesh::FirewallRulesServiceGetExplanationResponse { explanation })
    }

    async fn get_statistics(
        &self,
        request: Request<mesh::FirewallRulesServiceGetStatisticsRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceGetStatisticsResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = parse("project", &request.project)?;
        let found = self.firewall_statistics(&caller, &request.firewall, Some(project));
        let statistics = Some(found.await?);
        ok(mesh::FirewallRulesServiceGetStatisticsResponse { statistics })
    }

    async fn r#try(
        &self,
        request: Request<mesh::FirewallRulesServiceTryRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceTryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = own(&request.project, &request.firewall, &request.network)?;
        let firewalls = self.try_rules(&caller, scope, request.content).await?;
        ok(mesh::FirewallRulesServiceTryResponse { firewalls })
    }

    async fn list_firewalls(
        &self,
        request: Request<mesh::FirewallRulesServiceListFirewallsRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceListFirewallsResponse> {
        let caller = Caller::of(&request)?;
        let project = parse("project", &request.get_ref().project)?;
        let firewalls = self.firewalls_of(&caller, Some(project)).await?;
        ok(mesh::FirewallRulesServiceListFirewallsResponse { firewalls })
    }

    async fn replace_firewall(
        &self,
        request: Request<mesh::FirewallRulesServiceReplaceFirewallRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceReplaceFirewallResponse> {
        let caller = Caller::of(&request)?;
        ok(self
            .take_replacement_step(&caller, request.get_ref())
            .await?)
    }
}

/// A set of the project itself: it writes no other.
fn own(project: &str, firewall: &str, network: &str) -> Result<RulesScope, Status> {
    let project: ProjectId = parse("project", project)?;
    RulesScope::of(Some(project), firewall, network, RuleOwner::Tenant)
}
