use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::flow_mark::BoundFlow;
use crate::rule::{NetworkKind, RuleSet};

/// Part of the names of the chains and sets for packets to the firewall itself: it differs if
/// anything that these depend on does.
pub(super) fn of_input(rules: &RuleSet) -> String {
    let mut hasher = DefaultHasher::new();
    rules.input.hash(&mut hasher);
    for network in &rules.networks {
        network.kind.hash(&mut hasher);
        network.interfaces.hash(&mut hasher);
        network.prefixes.hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// Part of the names of the chains and sets that check sources.
pub(super) fn of_sources(rules: &RuleSet) -> String {
    let mut hasher = DefaultHasher::new();
    for network in &rules.networks {
        network.id.hash(&mut hasher);
        network.kind.hash(&mut hasher);
        network.interfaces.hash(&mut hasher);
        network.prefixes.hash(&mut hasher);
        network.addresses.hash(&mut hasher);
        network.nat_addresses.hash(&mut hasher);
    }
    let listen = rules.resolver.as_ref().map(|resolver| &resolver.listen);
    listen.hash(&mut hasher);
    rules.input.management_interfaces.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Part of the names of the sets that bind flows to networks.
pub(super) fn of_flows(flows: &[BoundFlow]) -> String {
    let mut hasher = DefaultHasher::new();
    flows.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Part of the names of layers and of the set of private interfaces: it differs if the operator's
/// rules or these interfaces differ.
pub(super) fn epoch(rules: &RuleSet) -> String {
    // Its keys are constants: equal rules have equal names in every process.
    let mut hasher = DefaultHasher::new();
    rules.operator.hash(&mut hasher);
    for network in &rules.networks {
        if network.kind == NetworkKind::Private {
            network.interfaces.hash(&mut hasher);
        }
    }
    format!("{:016x}", hasher.finish())
}
