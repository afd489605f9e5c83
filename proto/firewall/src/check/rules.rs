//! Rules of operators, and policies of tenants.

use ipnet::IpNet;

use super::operators_only;
use super::parts::{NAME_LEN_MAX, NETWORK_NAME_LEN_MAX, addresses, name, protocols, shortened};
use crate::{CheckedRule, NamePattern, RuleList, RuleScope, RuleSpec, Violation, prefixes};

/// Checks a rule of an operator.
pub(super) fn operator(
    spec: &RuleSpec,
    index: usize,
    scope: RuleScope<'_>,
) -> Result<CheckedRule, Violation> {
    operators_only("rules", scope)?;
    let action = action(spec)?;
    let (is_ingress, is_egress) = match spec.direction.as_deref() {
        Some("ingress") => (true, false),
        Some("egress") => (false, true),
        None | Some("any") if scope.network.is_none() => (true, true),
        None | Some("any") => {
            let problem = "a rule of a network has one direction";
            return Err(Violation::new(
                "direction",
                problem,
                "use ingress or egress",
            ));
        }
        Some(other) => {
            let problem = format!("{:?} is not a direction", shortened(other));
            let remedy = "use ingress, egress or any";
            return Err(Violation::new("direction", problem, remedy));
        }
    };
    if !spec.to_fqdns.is_empty() {
        let remedy = "use `to` with prefixes; egress policies have names";
        return Err(Violation::new(
            "toFQDNs",
            "rules of operators have no names",
            remedy,
        ));
    }
    let parts = RuleParts::of(spec, index, scope, is_ingress)?;
    Ok(CheckedRule {
        list: RuleList::Operator,
        name: parts.name,
        action: action.to_owned(),
        is_ingress,
        is_egress,
        sources: parts.sources,
        destinations: Some(parts.destinations),
        protocols: protocols("ports", &spec.ports)?,
    })
}

fn action(spec: &RuleSpec) -> Result<&str, Violation> {
    let Some(action) = spec.action.as_deref() else {
        let remedy = "add accept, drop or log";
        return Err(Violation::new("action", "it is missing", remedy));
    };
    if !["accept", "drop", "log"].contains(&action) {
        let problem = format!("{:?} is not an action", shortened(action));
        return Err(Violation::new("action", problem, "use accept, drop or log"));
    }
    Ok(action)
}

/// Checks a policy of the list `list`.
pub(super) fn policy(
    spec: &RuleSpec,
    index: usize,
    list: RuleList,
    scope: RuleScope<'_>,
) -> Result<CheckedRule, Violation> {
    let is_ingress = list == RuleList::Ingress;
    if spec
        .action
        .as_deref()
        .is_some_and(|action| action != "accept")
    {
        let remedy = "remove it; rules of operators may deny";
        return Err(Violation::new("action", "a policy only accepts", remedy));
    }
    let own = if is_ingress { "ingress" } else { "egress" };
    if spec
        .direction
        .as_deref()
        .is_some_and(|direction| direction != own)
    {
        let problem = "it is not that of the list";
        return Err(Violation::new(
            "direction",
            problem,
            "remove it, or move the policy",
        ));
    }
    names(spec, is_ingress)?;
    let parts = RuleParts::of(spec, index, scope, is_ingress)?;
    Ok(CheckedRule {
        list,
        name: parts.name,
        action: "accept".to_owned(),
        is_ingress,
        is_egress: !is_ingress,
        sources: parts.sources,
        destinations: spec.to_fqdns.is_empty().then_some(parts.destinations),
        protocols: protocols("ports", &spec.ports)?,
    })
}

/// The parts that all rules have.
struct RuleParts {
    name: String,
    sources: Vec<IpNet>,
    destinations: Vec<IpNet>,
}

impl RuleParts {
    fn of(
        spec: &RuleSpec,
        index: usize,
        scope: RuleScope<'_>,
        is_ingress: bool,
    ) -> Result<Self, Violation> {
        let default = format!("rule-{index}");
        let own = if spec.name.is_empty() {
            &default
        } else {
            &spec.name
        };
        let len_max = match scope.network {
            Some(_) => NETWORK_NAME_LEN_MAX,
            None => NAME_LEN_MAX,
        };
        let mut parts = Self {
            name: name("name", own, len_max)?,
            sources: addresses("from", &spec.from)?,
            destinations: addresses("to", &spec.to)?,
        };
        let Some(network) = scope.network else {
            return Ok(parts);
        };
        let (field, blocks, inner) = match is_ingress {
            true => ("to", &spec.to, &mut parts.destinations),
            false => ("from", &spec.from, &mut parts.sources),
        };
        if blocks.is_empty() {
            *inner = prefixes::merged(network);
        }
        inside(field, inner, network)?;
        Ok(parts)
    }
}

/// Refuses addresses of other networks in the rules of a network.
fn inside(field: &str, named: &[IpNet], network: &[IpNet]) -> Result<(), Violation> {
    let network = prefixes::merged(network);
    let is_inside = |net: &&IpNet| network.iter().any(|outer| prefixes::contains(outer, net));
    let Some(outside) = named.iter().find(|net| !is_inside(net)) else {
        return Ok(());
    };
    let all: Vec<String> = network.iter().map(ToString::to_string).collect();
    let remedy = format!(
        "name prefixes in {}, leave it out for all of them, or attach the rule to the firewall",
        all.join(", ")
    );
    let problem = format!("{outside} is outside of the network");
    Err(Violation::new(field, problem, &remedy))
}

fn names(spec: &RuleSpec, is_ingress: bool) -> Result<(), Violation> {
    if spec.to_fqdns.is_empty() {
        return Ok(());
    }
    if is_ingress || !spec.to.is_empty() {
        let problem = "only an egress policy without `to` has names";
        return Err(Violation::new("toFQDNs", problem, "remove it, or `to`"));
    }
    spec.to_fqdns
        .iter()
        .enumerate()
        .try_for_each(|(index, names)| pattern(&format!("toFQDNs[{index}]"), names))
}

fn pattern(field: &str, names: &NamePattern) -> Result<(), Violation> {
    /// Longest name of the DNS, characters.
    const LEN_MAX: usize = 253;
    let (text, has_stars) = match (&names.match_name, &names.match_pattern) {
        (Some(name), None) => (name, false),
        (None, Some(pattern)) => (pattern, true),
        _ => {
            let remedy = "set one of both: `matchName` for a name, `matchPattern` with `*`";
            return Err(Violation::new(
                field,
                "it is not one name or pattern",
                remedy,
            ));
        }
    };
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c) || (has_stars && c == '*');
    let labels = text.strip_suffix('.').unwrap_or(text);
    let is_valid = text.len() <= LEN_MAX
        && text.chars().all(is_part)
        && labels
            .split('.')
            .all(|label| (1..=63).contains(&label.len()));
    if is_valid {
        return Ok(());
    }
    let problem = format!("{:?} is not a name", shortened(text));
    Err(Violation::new(
        field,
        problem,
        "write it as www.example.com or *.example.com",
    ))
}
