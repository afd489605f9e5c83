//! Fields of a node that the policy hides from some of those who see it.

use serde_json::{Map, Value, json};

/// The rule that permits all fields.
const THRESHOLD: &str = "baremetal:node:get:filter_threshold";
const DRIVER_INFO: &str = "baremetal:node:get:driver_info";
const DRIVER_INTERNAL_INFO: &str = "baremetal:node:get:driver_internal_info";
const LAST_ERROR: &str = "baremetal:node:get:last_error";
const RESERVATION: &str = "baremetal:node:get:reservation";

/// The fields that a caller does not see: `true` if one is hidden.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeMasks {
    /// Access to the BMC.
    driver_info: bool,
    /// The findings of agents.
    driver_internal_info: bool,
    /// The reason of a failure.
    last_error: bool,
    /// The control node that works on it.
    reservation: bool,
}

impl NodeMasks {
    /// The fields that the policy hides. `permits` asks a rule about the node.
    pub(crate) fn of(permits: impl Fn(&str) -> bool) -> Self {
        if permits(THRESHOLD) {
            return Self::default();
        }
        Self {
            driver_info: !permits(DRIVER_INFO),
            driver_internal_info: !permits(DRIVER_INTERNAL_INFO),
            last_error: !permits(LAST_ERROR),
            reservation: !permits(RESERVATION),
        }
    }

    /// Replaces the hidden fields of a node by texts that name the rule, as Ironic has them.
    pub(super) fn apply(self, node: &mut Map<String, Value>) {
        if self.driver_info {
            let text = format!("** Redacted - requires {DRIVER_INFO} permission. **");
            node.insert("driver_info".to_owned(), json!({ "content": text }));
        }
        if self.driver_internal_info {
            let text = format!("** Redacted - Requires {DRIVER_INTERNAL_INFO} permission. **");
            let masked = json!({ "content": text });
            node.insert("driver_internal_info".to_owned(), masked);
        }
        if self.last_error {
            let text = format!("** Value Redacted - Requires {LAST_ERROR} permission. **");
            node.insert("last_error".to_owned(), text.into());
        }
        if self.reservation {
            let text = format!("** Redacted - requires {RESERVATION} permission. **");
            node.insert("reservation".to_owned(), text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hide_fields() {
        let hidden = NodeMasks {
            driver_info: true,
            driver_internal_info: true,
            last_error: true,
            reservation: true,
        };
        let but_error = NodeMasks {
            last_error: false,
            ..hidden
        };
        assert_eq!(
            NodeMasks::of(|rule| rule == THRESHOLD),
            NodeMasks::default()
        );
        assert_eq!(NodeMasks::of(|_| false), hidden);
        assert_eq!(NodeMasks::of(|rule| rule == LAST_ERROR), but_error);
    }

    #[test]
    fn hidden_fields_name_their_rule() {
        let mut node = Map::new();
        NodeMasks::of(|_| false).apply(&mut node);
        let rule = |name: &str| format!("baremetal:node:get:{name} permission. **");
        let expected = json!({
            "last_error": format!("** Value Redacted - Requires {}", rule("last_error")),
            "reservation": format!("** Redacted - requires {}", rule("reservation")),
            "driver_info": {
                "content": format!("** Redacted - requires {}", rule("driver_info")),
            },
            "driver_internal_info": {
                "content": format!("** Redacted - Requires {}", rule("driver_internal_info")),
            },
        });
        assert_eq!(Value::Object(node), expected);
        let mut plain = Map::new();
        NodeMasks::default().apply(&mut plain);
        assert!(plain.is_empty());
    }
}
