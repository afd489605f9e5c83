//! Rate limits, source NAT and allowed networks.

use super::{firewalls_only, operators_only};
use crate::parts::{self, prefix};
use crate::{EgressAddresses, RateLimit, RuleContent, RuleScope, Violation};

/// Checks the objects that are no rules.
pub(super) fn check(content: &RuleContent, scope: RuleScope<'_>) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut note = |object: &str, result: Result<(), Violation>| {
        wrong.extend(result.err().map(|violation| violation.of(object)));
    };
    for (index, limit) in content.rate_limits.iter().enumerate() {
        note(&format!("firewall rateLimits[{index}]"), rate(limit, scope));
    }
    for (index, egress) in content.egress_addresses.iter().enumerate() {
        let object = format!("firewall egressRules[{index}]");
        note(&object, addresses(egress, scope));
    }
    if !content.allowed_networks.is_empty() {
        note("firewall allowedNetworks", allowed(content, scope));
    }
    if content.log_accepted {
        let field = "logAcceptedConnections";
        let may = operators_only(field, scope).and_then(|()| firewalls_only(field, scope));
        note("firewall", may);
    }
    wrong
}

fn rate(limit: &RateLimit, scope: RuleScope<'_>) -> Result<(), Violation> {
    operators_only("rateLimits", scope)?;
    firewalls_only("rateLimits", scope)?;
    network(&limit.network_id)?;
    parts::rate(limit.rate).map(drop)
}

fn addresses(egress: &EgressAddresses, scope: RuleScope<'_>) -> Result<(), Violation> {
    firewalls_only("egressRules", scope)?;
    network(&egress.network_id)?;
    parts::nat_addresses(&egress.ips).map(drop)
}

fn network(id: &str) -> Result<(), Violation> {
    if id.is_empty() {
        let remedy = "name a network of the firewall";
        return Err(Violation::new("networkID", "it is missing", remedy));
    }
    Ok(())
}

fn allowed(content: &RuleContent, scope: RuleScope<'_>) -> Result<(), Violation> {
    operators_only("allowedNetworks", scope)?;
    firewalls_only("allowedNetworks", scope)?;
    let lists = &content.allowed_networks;
    for (field, list) in [
        ("egress", &lists.egress_prefixes),
        ("ingress", &lists.ingress_prefixes),
    ] {
        list.iter()
            .try_for_each(|text| prefix(field, text).map(drop))?;
    }
    Ok(())
}
