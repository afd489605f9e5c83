//! The rules of the policy that a change of a node needs, by the fields that it touches.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::listing::flag;
use crate::patch::JsonPatch;
use crate::view::INTERFACE_KINDS;

/// The rule for fields that have none of their own.
const UPDATE: &str = "baremetal:node:update";
/// The rule for driver and interfaces.
const INTERFACES: &str = "baremetal:node:update:driver_interfaces";
/// The rule for a node that is not to be cleaned.
const DISABLE_CLEANING: &str = "baremetal:node:disable_cleaning";

/// Rules of single fields.
const OWN_RULES: [(&str, &str); 18] = [
    ("chassis_uuid", "baremetal:node:update:chassis_uuid"),
    ("conductor_group", "baremetal:node:update:conductor_group"),
    (
        "disable_power_off",
        "baremetal:node:update:disable_power_off",
    ),
    ("driver", INTERFACES),
    ("driver_info", "baremetal:node:update:driver_info"),
    ("extra", "baremetal:node:update_extra"),
    ("instance_info", "baremetal:node:update_instance_info"),
    ("instance_name", "baremetal:node:update_instance_info"),
    ("instance_uuid", "baremetal:node:update:instance_uuid"),
    ("lessee", "baremetal:node:update:lessee"),
    ("name", "baremetal:node:update:name"),
    ("network_data", "baremetal:node:update:network_data"),
    ("owner", "baremetal:node:update:owner"),
    ("parent_node", "baremetal:node:update:parent_node"),
    ("properties", "baremetal:node:update:properties"),
    ("retired", "baremetal:node:update:retired"),
    ("retired_reason", "baremetal:node:update:retired"),
    ("shard", "baremetal:node:update:shard"),
];

/// The rules that all have to permit a patch of a node.
pub(super) fn update_rules(patch: &JsonPatch) -> BTreeSet<&'static str> {
    let roots = patch.roots();
    if roots.is_empty() {
        return BTreeSet::from([UPDATE]);
    }
    let rule = |root: &str| match root {
        "automated_clean" if disables(patch.value_of(root)) => DISABLE_CLEANING,
        root => rule_of(root),
    };
    roots.into_iter().map(rule).collect()
}

fn rule_of(root: &str) -> &'static str {
    let kind = root.strip_suffix("_interface");
    if kind.is_some_and(|kind| INTERFACE_KINDS.contains(&kind)) {
        return INTERFACES;
    }
    let own = OWN_RULES.iter().find(|(field, _)| *field == root);
    own.map_or(UPDATE, |(_, rule)| *rule)
}

/// `true` for a value that stands for false.
fn disables(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => !value,
        Some(Value::String(text)) => flag("automated_clean", text).is_ok_and(|value| !value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(patch: Value) -> Vec<&'static str> {
        let rules = update_rules(&JsonPatch::parse(&patch).unwrap());
        rules.into_iter().collect()
    }

    #[test]
    fn every_field_has_its_rule() {
        for (path, rule) in [
            ("/extra/a", "baremetal:node:update_extra"),
            ("/instance_info", "baremetal:node:update_instance_info"),
            ("/instance_name", "baremetal:node:update_instance_info"),
            ("/driver", INTERFACES),
            ("/driver_info/a", "baremetal:node:update:driver_info"),
            ("/power_interface", INTERFACES),
            ("/vendor_interface", INTERFACES),
            ("/nonsense_interface", UPDATE),
            ("/owner", "baremetal:node:update:owner"),
            ("/lessee", "baremetal:node:update:lessee"),
            ("/retired_reason", "baremetal:node:update:retired"),
            ("/protected", UPDATE),
            ("/resource_class", UPDATE),
            ("/maintenance", UPDATE),
            ("/description", UPDATE),
            ("/shard", "baremetal:node:update:shard"),
            ("/unknown", UPDATE),
        ] {
            let found = rules(json!([{"op": "replace", "path": path, "value": "x"}]));
            assert_eq!(found, [rule], "{path}");
        }
    }

    #[test]
    fn a_patch_needs_the_rules_of_all_its_fields() {
        let found = rules(json!([
            {"op": "add", "path": "/name", "value": "n"},
            {"op": "add", "path": "/extra/a", "value": 1},
            {"op": "remove", "path": "/extra/b"},
        ]));
        assert_eq!(
            found,
            ["baremetal:node:update:name", "baremetal:node:update_extra"]
        );
        assert_eq!(rules(json!([])), [UPDATE]);
    }

    #[test]
    fn cleaning_is_disabled_by_its_own_rule() {
        for (value, rule) in [
            (json!(false), DISABLE_CLEANING),
            (json!("False"), DISABLE_CLEANING),
            (json!("0"), DISABLE_CLEANING),
            (json!(true), UPDATE),
            (json!(null), UPDATE),
            (json!("nonsense"), UPDATE),
        ] {
            let patch = json!([{"op": "add", "path": "/automated_clean", "value": value}]);
            assert_eq!(rules(patch), [rule]);
        }
        let removal = json!([{"op": "remove", "path": "/automated_clean"}]);
        assert_eq!(rules(removal), [UPDATE]);
    }
}
