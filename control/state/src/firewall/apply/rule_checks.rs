//! Checks of what a set of rules says: the validator's, and those that need other rows.

use proto_errors::{Error, ErrorCode};
use proto_firewall::{RuleContent, RuleOwner, Violation, check};
use proto_types::{MachineId, ProjectId};

use super::shares::{self, scope};
use crate::firewall::entity::{RuleSetKey, RuleTarget};
use crate::firewall::name_servers::name_servers;
use crate::firewall::read::{
    CONTENT_BYTES_MAX, content_bytes, firewall_allocation, firewalls_of_set, has_address,
};
use crate::machine::entity::{Allocation, Machine};
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

/// Checks a content as a write of it would; returns the project of the set.
///
/// # Errors
/// Those of the write.
pub fn check_rules(
    tables: &Tables,
    set: &RuleSetKey,
    caller: Option<ProjectId>,
    content: &RuleContent,
) -> Result<ProjectId, Error> {
    let project = project_of(tables, &set.target, caller)?;
    let mut content = content.clone();
    content.name_unnamed();
    check_content(tables, set, project, &content)?;
    Ok(project)
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
    let mut wrong = check(content, scope(tables, set));
    if wrong.is_empty() {
        wrong = networks(tables, set, project, content);
        wrong.extend(names(tables, set, project, content));
    }
    refuse(&wrong)?;
    shares::check(tables, set, project, content)
}

fn refuse(wrong: &[Violation]) -> CheckResult {
    if wrong.is_empty() {
        return Ok(());
    }
    let named = wrong.iter().take(VIOLATIONS_NAMED);
    let mut lines: Vec<String> = named.map(ToString::to_string).collect();
    if wrong.len() > VIOLATIONS_NAMED {
        let more = wrong.len() - VIOLATIONS_NAMED;
        lines.push(format!("{more} more objects are wrong"));
    }
    Err(Error::new(ErrorCode::InvalidField, lines.join("\n")))
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
    let mut wrong = Vec::new();
    for (index, limit) in content.rate_limits.iter().enumerate() {
        if kind_of(allocation, &limit.network_id).is_none() {
            wrong.push(Violation {
                object: format!("firewall rateLimits[{index}]"),
                field: "networkID".to_owned(),
                problem: format!("the firewall has no network {:?}", limit.network_id),
                remedy: "name one of its networks".to_owned(),
            });
        }
    }
    for (index, egress) in content.egress_addresses.iter().enumerate() {
        let object = format!("firewall egressRules[{index}]");
        if kind_of(allocation, &egress.network_id) != Some(NetworkType::External) {
            wrong.push(no_external(object, &egress.network_id));
            continue;
        }
        // Another project's address would take the answers to its flows away from it.
        let mut ips = egress.ips.iter();
        let foreign = ips.find(|ip| {
            set.owner == RuleOwner::Tenant && !has_address(tables, project, &egress.network_id, ip)
        });
        wrong.extend(foreign.map(|ip| foreign_address(object, &egress.network_id, ip)));
    }
    wrong
}

/// Policies with names, if a firewall that the set is for has no name server to ask: it would refuse
/// them.
fn names(
    tables: &Tables,
    set: &RuleSetKey,
    project: ProjectId,
    content: &RuleContent,
) -> Vec<Violation> {
    let policies = content.egress_policies.iter();
    let named: Vec<_> = policies.filter(|rule| !rule.to_fqdns.is_empty()).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let mut firewalls = firewalls_of_set(tables, set, project).into_iter();
    let without =
        |id: &MachineId| name_servers(tables, *id).is_some_and(|servers| servers.is_empty());
    let Some(firewall) = firewalls.find(without) else {
        return Vec::new();
    };
    let partition = partition_of(tables, firewall);
    let named = named.into_iter();
    named
        .map(|rule| no_name_server(&rule.name, firewall, &partition))
        .collect()
}

fn partition_of(tables: &Tables, machine: MachineId) -> String {
    let machine = tables.get::<Machine>(&machine);
    let partition = machine.and_then(|machine| machine.partition.as_ref());
    partition.map(ToString::to_string).unwrap_or_default()
}

fn no_name_server(name: &str, firewall: MachineId, partition: &str) -> Violation {
    Violation {
        object: format!("cwnp egress/{name}"),
        field: "toFQDNs".to_owned(),
        problem: format!("firewall {firewall} has no name server that it may ask"),
        remedy: format!(
            "set dns_servers of the partition (the operator: `metalmesh partition update \
             {partition} --dns ADDRESS`), or use `to`"
        ),
    }
}

/// The type of a network of a firewall. `None` means that the firewall is not in it.
fn kind_of(allocation: &Allocation, id: &str) -> Option<NetworkType> {
    let mut networks = allocation.networks.iter();
    let found = networks.find(|network| network.network.as_str() == id);
    found.map(|network| network.kind)
}

fn no_external(object: String, network: &str) -> Violation {
    Violation {
        object,
        field: "networkID".to_owned(),
        problem: format!("{network:?} is no external network of the firewall"),
        remedy: "name one of its external networks".to_owned(),
    }
}

fn foreign_address(object: String, network: &str, ip: &str) -> Violation {
    Violation {
        object,
        field: "ips".to_owned(),
        problem: format!("the project has no address {ip} in {network}"),
        remedy: "allocate it: `metalmesh ip create`".to_owned(),
    }
}
