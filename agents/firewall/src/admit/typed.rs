use proto_firewall::{CheckedRule, prefixes};

use crate::rule::{Rule, RuleId};

/// The typed rule of a checked one, without names and without logging.
pub(super) fn typed(id: RuleId, checked: CheckedRule) -> Rule {
    Rule {
        id,
        direction: checked.direction,
        sources: checked.sources,
        // Names narrow them down later.
        destinations: checked.destinations.unwrap_or_else(prefixes::any),
        names: Vec::new(),
        protocols: checked.protocols,
        action: checked.action,
        log: false,
    }
}
