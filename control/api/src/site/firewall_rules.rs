//! Firewall rules of projects, and what both services of firewall rules share.

use control_convert::firewall::{
    RuleDetail, firewalls, from_content, from_owner, from_target, revision, rules,
};
use control_convert::parse;
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::query::rule_history;
use control_state::{
    DeleteFirewallRules, FirewallRuleSet, Op, RollBackFirewallRules, RuleSetKey, RuleTarget,
    SetFirewallRules, StateError, Tables,
};
use proto_firewall::RuleOwner;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::firewall_rules_service_server::FirewallRulesService;
use proto_types::ProjectId;
use tonic::{Request, Status};

use super::firewall_explain::explanation;
use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl FirewallRulesService for Services {
    async fn set(
        &self,
        request: Request<mesh::FirewallRulesServiceSetRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetFirewallRules {
            set: own(&request.firewall, &request.network)?,
            project: Some(parse("project", &request.project)?),
            content: from_content(request.content)?,
            comment: request.comment,
            expected: request.expected_revision,
        };
        let rules = self.rules_reply(&caller, op).await?;
        ok(mesh::FirewallRulesServiceSetResponse { rules: Some(rules) })
    }

    async fn roll_back(
        &self,
        request: Request<mesh::FirewallRulesServiceRollBackRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceRollBackResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = RollBackFirewallRules {
            set: own(&request.firewall, &request.network)?,
            project: Some(parse("project", &request.project)?),
            number: request.revision,
            comment: request.comment,
            expected: request.expected_revision,
        };
        let rules = self.rules_reply(&caller, op).await?;
        ok(mesh::FirewallRulesServiceRollBackResponse { rules: Some(rules) })
    }

    async fn remove(
        &self,
        request: Request<mesh::FirewallRulesServiceRemoveRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = DeleteFirewallRules {
            set: own(&request.firewall, &request.network)?,
            project: Some(parse("project", &request.project)?),
            expected: request.expected_revision,
        };
        let rules = self.rules_reply(&caller, op).await?;
        ok(mesh::FirewallRulesServiceRemoveResponse { rules: Some(rules) })
    }

    async fn get(
        &self,
        request: Request<mesh::FirewallRulesServiceGetRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let set = RuleSetKey {
            target: from_target(&request.firewall, &request.network)?,
            owner: from_owner(&request.owner, RuleOwner::Tenant)?,
        };
        let project = parse("project", &request.project)?;
        let found = self.gate.read(&caller, |tables| {
            let row = find(tables, &set, Some(project))?;
            Ok(mesh::FirewallRulesServiceGetResponse {
                rules: Some(rules(row, RuleDetail::Content)),
                firewalls: firewalls(tables, row),
            })
        });
        ok(found.await?)
    }

    async fn list(
        &self,
        request: Request<mesh::FirewallRulesServiceListRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceListResponse> {
        let caller = Caller::of(&request)?;
        let project: ProjectId = parse("project", &request.get_ref().project)?;
        let found = self.gate.read(&caller, |tables| {
            let rows = tables.all::<FirewallRuleSet>();
            let rows = rows.filter(|row| row.project == project);
            Ok(rows.map(|row| rules(row, RuleDetail::Summary)).collect())
        });
        ok(mesh::FirewallRulesServiceListResponse {
            rules: found.await?,
        })
    }

    async fn list_history(
        &self,
        request: Request<mesh::FirewallRulesServiceListHistoryRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceListHistoryResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let set = RuleSetKey {
            target: from_target(&request.firewall, &request.network)?,
            owner: from_owner(&request.owner, RuleOwner::Tenant)?,
        };
        let project = parse("project", &request.project)?;
        let found = self.gate.read(&caller, |tables| {
            history(tables, &set, Some(project), request.revision)
        });
        ok(mesh::FirewallRulesServiceListHistoryResponse {
            revisions: found.await?,
        })
    }

    async fn get_explanation(
        &self,
        request: Request<mesh::FirewallRulesServiceGetExplanationRequest>,
    ) -> ApiResult<mesh::FirewallRulesServiceGetExplanationResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = parse("project", &request.project)?;
        let question = super::firewall_explain::FlowQuestion::of(
            &request.firewall,
            &request.from,
            &request.to,
            request.protocol,
            request.port,
        )?;
        let found = self.gate.read(&caller, |tables| {
            explanation(tables, &question, Some(project))
        });
        ok(mesh::FirewallRulesServiceGetExplanationResponse {
            explanation: Some(found.await?),
        })
    }
}

/// A set of the project itself: it writes no other.
fn own(firewall: &str, network: &str) -> Result<RuleSetKey, Status> {
    Ok(RuleSetKey {
        target: from_target(firewall, network)?,
        owner: RuleOwner::Tenant,
    })
}

impl Services {
    /// Proposes a write of a set; returns the set.
    pub(super) async fn rules_reply(
        &self,
        caller: &Caller,
        op: impl Into<Op>,
    ) -> Result<mesh::FirewallRules, Status> {
        let reply = self.gate.propose(caller, op).await?;
        let row = reply.firewall_rule_set().map_err(of_state)?;
        Ok(rules(&row, RuleDetail::Content))
    }
}

/// A set that the caller may see. `None` as the project means an administrator.
pub(super) fn find<'a>(
    tables: &'a Tables,
    set: &RuleSetKey,
    project: Option<ProjectId>,
) -> Result<&'a FirewallRuleSet, StateError> {
    let row = tables.get::<FirewallRuleSet>(set);
    let row = row.filter(|row| project.is_none_or(|project| project == row.project));
    row.map(AsRef::as_ref).ok_or_else(|| {
        let hint = match set.target {
            RuleTarget::Firewall(_) => "see: metalmesh firewall rules ls",
            RuleTarget::Network(_) => "see: metalmesh firewall rules ls; metalmesh network ls",
        };
        StateError::not_found("firewall rules", set).hint(hint)
    })
}

/// The revisions of a set, the newest first. With the number of one: that one, with its content.
pub(super) fn history(
    tables: &Tables,
    set: &RuleSetKey,
    project: Option<ProjectId>,
    number: u64,
) -> Result<Vec<mesh::FirewallRules>, StateError> {
    let row = find(tables, set, project)?;
    let earlier = rule_history(tables, set).map(|history| &history.revision);
    let mut all = std::iter::once(&row.current).chain(earlier);
    if number == 0 {
        let shown = all.map(|one| revision(set, row.project, one, RuleDetail::Summary));
        return Ok(shown.collect());
    }
    let found = all.find(|one| one.number == number).ok_or_else(|| {
        let key = format!("{set}/{number}");
        StateError::not_found("revision of firewall rules", key)
            .hint("see the revisions that are kept: metalmesh firewall rules history")
    })?;
    Ok(vec![revision(set, row.project, found, RuleDetail::Content)])
}
