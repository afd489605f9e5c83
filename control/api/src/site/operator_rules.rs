//! Firewall rules of the operator.

use control_convert::firewall::from_owner;
use control_gate::Caller;
use proto_firewall::RuleOwner;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::operator_rules_service_server::OperatorRulesService;
use tonic::{Request, Status};

use super::firewall_explain::FlowQuestion;
use super::rules_scope::{RulesNote, RulesScope};
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl OperatorRulesService for Services {
    async fn set(
        &self,
        request: Request<mesh::OperatorRulesServiceSetRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = scope(&request.firewall, &request.network, "")?;
        let note = RulesNote {
            comment: request.comment,
            expected: request.expected_revision,
        };
        let made = self.set_rules(&caller, scope, request.content, note);
        let rules = made.await?;
        ok(mesh::OperatorRulesServiceSetResponse { rules })
    }

    async fn roll_back(
        &self,
        request: Request<mesh::OperatorRulesServiceRollBackRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceRollBackResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = scope(&request.firewall, &request.network, &request.owner)?;
        let note = RulesNote {
            comment: request.comment,
            expected: request.expected_revision,
        };
        let made = self.roll_back_rules(&caller, scope, request.revision, note);
        let rules = made.await?;
        ok(mesh::OperatorRulesServiceRollBackResponse { rules })
    }

    async fn remove(
        &self,
        request: Request<mesh::OperatorRulesServiceRemoveRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = scope(&request.firewall, &request.network, &request.owner)?;
        let gone = self.remove_rules(&caller, scope, request.expected_revision);
        let rules = gone.await?;
        ok(mesh::OperatorRulesServiceRemoveResponse { rules })
    }

    async fn get(
        &self,
        request: Request<mesh::OperatorRulesServiceGetRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = scope(&request.firewall, &request.network, &request.owner)?;
        let found = self.rules_in_force(&caller, &scope).await?;
        ok(mesh::OperatorRulesServiceGetResponse {
            rules: Some(found.rules),
            firewalls: found.firewalls,
        })
    }

    async fn list(
        &self,
        request: Request<mesh::OperatorRulesServiceListRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceListResponse> {
        let caller = Caller::of(&request)?;
        let rules = self.list_rules(&caller, None).await?;
        ok(mesh::OperatorRulesServiceListResponse { rules })
    }

    async fn list_history(
        &self,
        request: Request<mesh::OperatorRulesServiceListHistoryRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceListHistoryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = scope(&request.firewall, &request.network, &request.owner)?;
        let revisions = self
            .rules_history(&caller, &scope, request.revision)
            .await?;
        ok(mesh::OperatorRulesServiceListHistoryResponse { revisions })
    }

    async fn get_explanation(
        &self,
        request: Request<mesh::OperatorRulesServiceGetExplanationRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceGetExplanationResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let question = FlowQuestion::of(
            &request.firewall,
            &request.from,
            &request.to,
            request.protocol,
            request.port,
        )?;
        let explanation = Some(self.explain_flow(&caller, &question, None).await?);
        ok(mesh::OperatorRulesServiceGetExplanationResponse { explanation })
    }

    async fn get_statistics(
        &self,
        request: Request<mesh::OperatorRulesServiceGetStatisticsRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceGetStatisticsResponse> {
        let caller = Caller::of(&request)?;
        let firewall = request.into_inner().firewall;
        let statistics = Some(self.firewall_statistics(&caller, &firewall, None).await?);
        ok(mesh::OperatorRulesServiceGetStatisticsResponse { statistics })
    }

    async fn r#try(
        &self,
        request: Request<mesh::OperatorRulesServiceTryRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceTryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let scope = scope(&request.firewall, &request.network, "")?;
        let firewalls = self.try_rules(&caller, scope, request.content).await?;
        ok(mesh::OperatorRulesServiceTryResponse { firewalls })
    }

    async fn list_firewalls(
        &self,
        request: Request<mesh::OperatorRulesServiceListFirewallsRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceListFirewallsResponse> {
        let caller = Caller::of(&request)?;
        let firewalls = self.firewalls_of(&caller, None).await?;
        ok(mesh::OperatorRulesServiceListFirewallsResponse { firewalls })
    }
}

/// The set that a request names; the operator's if it names no owner.
fn scope(firewall: &str, network: &str, owner: &str) -> Result<RulesScope, Status> {
    let owner = from_owner(owner, RuleOwner::Operator)?;
    RulesScope::of(None, firewall, network, owner)
}
