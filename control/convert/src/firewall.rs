//! Sets of firewall rules, their keys, and the status of firewalls.

use control_gate::refusal::invalid;
use control_state::query::{firewall_allocation, firewalls_of_set};
use control_state::{
    FirewallRuleSet, FirewallStatus, RuleRevision, RuleSetKey, RuleTarget, Tables,
};
use proto_firewall::{RuleContent, RuleOwner};
use proto_public::metalmesh::admin::v1 as wire;
use proto_types::{MachineId, ProjectId};
use tonic::Status;

use super::{firewall_content, parse, required, time};

/// `true` if the contents of sets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleDetail {
    /// Only what describes the revision.
    Summary,
    /// Its content too.
    Content,
}

/// The target of a request.
///
/// # Errors
/// `invalid_argument` unless exactly one of both is given.
pub fn from_target(firewall: &str, network: &str) -> Result<RuleTarget, Status> {
    match (firewall.is_empty(), network.is_empty()) {
        (false, true) => Ok(RuleTarget::Firewall(parse("firewall", firewall)?)),
        (true, false) => Ok(RuleTarget::Network(parse("network", network)?)),
        _ => Err(invalid("firewall", "or network: name exactly one of both")),
    }
}

/// The owner that a request names; `default` if it names none.
///
/// # Errors
/// `invalid_argument` for another text.
pub fn from_owner(owner: &str, default: RuleOwner) -> Result<RuleOwner, Status> {
    match owner {
        "" => Ok(default),
        "operator" => Ok(RuleOwner::Operator),
        "tenant" => Ok(RuleOwner::Tenant),
        _ => Err(invalid("owner", "must be operator or tenant")),
    }
}

/// The content of a request.
///
/// # Errors
/// `invalid_argument` if it is missing.
pub fn from_content(content: Option<wire::FirewallRuleContent>) -> Result<RuleContent, Status> {
    required("content", content).map(firewall_content::from_content)
}

/// The revision of a set that is in force.
pub fn rules(row: &FirewallRuleSet, detail: RuleDetail) -> wire::FirewallRules {
    revision(&row.set, row.project, &row.current, detail)
}

/// A revision of a set.
pub fn revision(
    set: &RuleSetKey,
    project: ProjectId,
    revision: &RuleRevision,
    detail: RuleDetail,
) -> wire::FirewallRules {
    let (firewall, network) = match &set.target {
        RuleTarget::Firewall(id) => (id.to_string(), String::new()),
        RuleTarget::Network(id) => (String::new(), id.to_string()),
    };
    let content = || firewall_content::content(&revision.content);
    wire::FirewallRules {
        firewall,
        network,
        owner: set.owner.to_string(),
        project: project.to_string(),
        revision: revision.number,
        author: revision.author.clone(),
        at: time(revision.at),
        comment: revision.comment.clone(),
        rolled_back_to: revision.rolled_back_to.unwrap_or_default(),
        content: (detail == RuleDetail::Content).then(content),
        objects: u32::try_from(revision.content.objects()).unwrap_or(u32::MAX),
    }
}

/// The report of each firewall that a set is for. A viewer of a project sees its own: the operator's set
/// of a shared network is for those of other projects too. `None` as the viewer means an administrator.
pub fn firewalls(
    tables: &Tables,
    row: &FirewallRuleSet,
    viewer: Option<ProjectId>,
) -> Vec<wire::FirewallRulesOnFirewall> {
    let is_shown = |id: &MachineId| {
        let project = firewall_allocation(tables, *id).map(|found| found.project);
        viewer.is_none() || viewer == project
    };
    let ids = firewalls_of_set(tables, &row.set, row.project);
    ids.into_iter()
        .filter(is_shown)
        .map(|id| on_firewall(tables, id, row))
        .collect()
}

fn on_firewall(
    tables: &Tables,
    id: MachineId,
    row: &FirewallRuleSet,
) -> wire::FirewallRulesOnFirewall {
    let allocation = firewall_allocation(tables, id);
    let shown = wire::FirewallRulesOnFirewall {
        firewall: id.to_string(),
        hostname: allocation
            .map(|found| found.hostname.clone())
            .unwrap_or_default(),
        ..wire::FirewallRulesOnFirewall::default()
    };
    let Some(status) = tables.get::<FirewallStatus>(&id) else {
        return shown;
    };
    let applied = status.applied_sets.get(&row.set.to_string());
    let refused = status.refused_rules.iter();
    wire::FirewallRulesOnFirewall {
        applied_revision: applied.copied().unwrap_or_default(),
        refused: refused
            .map(|refused| wire::FirewallRefusedRule {
                object: refused.object.clone(),
                field: refused.field.clone(),
                problem: refused.problem.clone(),
                remedy: refused.remedy.clone(),
            })
            .collect(),
        error: status.error.clone().unwrap_or_default(),
        reported_at: time(status.at),
        ..shown
    }
}
