//! Firewall rules of the operator.

use control_convert::firewall::{
    RuleDetail, firewalls, from_content, from_owner, from_target, rules,
};
use control_gate::Caller;
use control_state::{
    DeleteFirewallRules, FirewallRuleSet, RollBackFirewallRules, RuleSetKey, SetFirewallRules,
};
use proto_firewall::RuleOwner;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::operator_rules_service_server::OperatorRulesService;
use tonic::{Request, Status};

use super::firewall_explain::{FlowQuestion, explanation};
use super::firewall_rules::{find, history};
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl OperatorRulesService for Services {
    async fn set(
        &self,
        request: Request<mesh::OperatorRulesServiceSetRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetFirewallRules {
            set: RuleSetKey {
                target: from_target(&request.firewall, &request.network)?,
                owner: RuleOwner::Operator,
            },
            project: None,
            content: from_content(request.content)?,
            comment: request.comment,
            expected: request.expected_revision,
        };
        let rules = self.rules_reply(&caller, op).await?;
        ok(mesh::OperatorRulesServiceSetResponse { rules: Some(rules) })
    }

    async fn roll_back(
        &self,
        request: Request<mesh::OperatorRulesServiceRollBackRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceRollBackResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = RollBackFirewallRules {
            set: key(&request.firewall, &request.network, &request.owner)?,
            project: None,
            number: request.revision,
            comment: request.comment,
            expected: request.expected_revision,
        };
        let rules = self.rules_reply(&caller, op).await?;
        ok(mesh::OperatorRulesServiceRollBackResponse { rules: Some(rules) })
    }

    async fn remove(
        &self,
        request: Request<mesh::OperatorRulesServiceRemoveRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = DeleteFirewallRules {
            set: key(&request.firewall, &request.network, &request.owner)?,
            project: None,
            expected: request.expected_revision,
        };
        let rules = self.rules_reply(&caller, op).await?;
        ok(mesh::OperatorRulesServiceRemoveResponse { rules: Some(rules) })
    }

    async fn get(
        &self,
        request: Request<mesh::OperatorRulesServiceGetRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let set = key(&request.firewall, &request.network, &request.owner)?;
        let found = self.gate.read(&caller, |tables| {
            let row = find(tables, &set, None)?;
            Ok(mesh::OperatorRulesServiceGetResponse {
                rules: Some(rules(row, RuleDetail::Content)),
                firewalls: firewalls(tables, row),
            })
        });
        ok(found.await?)
    }

    async fn list(
        &self,
        request: Request<mesh::OperatorRulesServiceListRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceListResponse> {
        let caller = Caller::of(&request)?;
        let found = self.gate.read(&caller, |tables| {
            let rows = tables.all::<FirewallRuleSet>();
            Ok(rows.map(|row| rules(row, RuleDetail::Summary)).collect())
        });
        ok(mesh::OperatorRulesServiceListResponse {
            rules: found.await?,
        })
    }

    async fn list_history(
        &self,
        request: Request<mesh::OperatorRulesServiceListHistoryRequest>,
    ) -> ApiResult<mesh::OperatorRulesServiceListHistoryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let set = key(&request.firewall, &request.network, &request.owner)?;
        let found = self.gate.read(&caller, |tables| {
            history(tables, &set, None, request.revision)
        });
        ok(mesh::OperatorRulesServiceListHistoryResponse {
            revisions: found.await?,
        })
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
        let found = self
            .gate
            .read(&caller, |tables| explanation(tables, &question, None));
        ok(mesh::OperatorRulesServiceGetExplanationResponse {
            explanation: Some(found.await?),
        })
    }
}

/// The set that a request names; the operator's if it names no owner.
fn key(firewall: &str, network: &str, owner: &str) -> Result<RuleSetKey, Status> {
    Ok(RuleSetKey {
        target: from_target(firewall, network)?,
        owner: from_owner(owner, RuleOwner::Operator)?,
    })
}
