//! Checks of what a set of rules says: the validator's, and those that need other rows.

use proto_errors::{Error, ErrorCode};
use proto_firewall::{RuleContent, RuleOwner, RuleScope, Violation, check};
use proto_types::ProjectId;

use crate::firewall::entity::{RuleSetKey, RuleTarget};
use crate::firewall::read::{CONTENT_BYTES_MAX, content_bytes, firewall_allocation, has_address};
use crate::network::entity::{Network, NetworkType};
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Violations that one error names; the rest is counted.
const VIOLATIONS_NAMED: usize = 8;

/// The project of a target. A target of another project than the caller's is not there.
pub(super) fn project_of(
    tables: &Tables,
    target: &RuleTarget,
    caller: Option<ProjectId>,
) -> Result<ProjectId, Error> {
    let found = match target {
        RuleTarget::Firewall(id) => firewall_allocation(tables, *id).map(|found| found.project),
        RuleTarget::Network(id) => {
            let network = tables.get::<Network>(id);
            let private = network.filter(|network| network.kind.is_child());
            private.and_then(|network| network.project)
        }
    };
    let mine = found.filter(|project| caller.is_none_or(|caller| caller == *project));
    mine.ok_or_else(|| match target {
        RuleTarget::Firewall(id) => Error::not_found("firewall", id),
        RuleTarget::Network(id) => Error::not_found("private network", id),
    })
}

/// Checks a content before it is stored.
pub(super) fn check_content(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    content: &RuleContent,
) -> CheckResult {
    let bytes = content_bytes(content);
    if bytes > CONTENT_BYTES_MAX {
        let message =
            format!("a set of firewall rules has {bytes} bytes, and may have {CONTENT_BYTES_MAX}");
        return Err(Error::new(ErrorCode::TooMany, message));
    }
    let network = match &set.target {
        RuleTarget::Firewall(_) => None,
        RuleTarget::Network(id) => tables.get::<Network>(id),
    };
    let scope = RuleScope {
        owner: set.owner,
        network: network.map(|network| network.prefixes.as_slice()),
    };
    let mut wrong = check(content, scope);
    if wrong.is_empty() {
        wrong = networks(tables, set, project, content);
    }
    refuse(&wrong)
}

fn refuse(wrong: &[Violation]) -> CheckResult {
    let Some(first) = wrong.first() else {
        return Ok(());
    };
    let mut message = first.to_string();
    for violation in wrong.iter().take(VIOLATIONS_NAMED).skip(1) {
        message.push_str("\n");
        message.push_str(&violation.to_string());
    }
    if wrong.len() > VIOLATIONS_NAMED {
        let more = wrong.len() - VIOLATIONS_NAMED;
        message.push_str(&format!("\nand {more} more objects are wrong"));
    }
    Err(Error::new(ErrorCode::InvalidField, message))
}

/// Objects that name networks or addresses which the firewall, or the project, does not have.
fn networks(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    content: &RuleContent,
) -> Vec<Violation> {
    let RuleTarget::Firewall(machine) = &set.target else {
        return Vec::new();
    };
    let Some(allocation) = firewall_allocation(tables, *machine) else {
        return Vec::new();
    };
    let violation = |object: String, field: &str, problem: String, remedy: &str| Violation {
        object,
        field: field.to_owned(),
        problem,
        remedy: remedy.to_owned(),
    };
    let kind = |id: &str| {
        let mut networks = allocation.networks.iter();
        let found = networks.find(|network| network.network.as_str() == id);
        found.map(|network| network.kind)
    };
    let mut wrong = Vec::new();
    for (index, limit) in content.rate_limits.iter().enumerate() {
        if kind(&limit.network_id).is_none() {
            let object = format!("firewall rateLimits[{index}]");
            let problem = format!("the firewall has no network {:?}", limit.network_id);
            wrong.push(violation(object, "networkID", problem, "name one of its networks"));
        }
    }
    for (index, egress) in content.egress_addresses.iter().enumerate() {
        let object = format!("firewall egressRules[{index}]");
        if kind(&egress.network_id) != Some(NetworkType::External) {
            let problem = format!("{:?} is no external network of the firewall", egress.network_id);
            let remedy = "name one of its external networks";
            wrong.push(violation(object, "networkID", problem, remedy));
            continue;
        }
        // Another project's address would take the answers to its flows away from it.
        let foreign = egress.ips.iter().find(|text| {
            set.owner == RuleOwner::Tenant && !has_address(tables, project, &egress.network_id, text)
        });
        if let Some(foreign) = foreign {
            let problem = format!("the project has no address {foreign} in {}", egress.network_id);
            let remedy = "allocate it: metalmesh ip create";
            wrong.push(violation(object, "ips", problem, remedy));
        }
    }
    wrong
}
