use serde_json::Value;

use super::KubernetesObject;
use super::object::{config_value, without_nulls};

/// A `ClusterwideNetworkPolicy` (metal-stack.io/v1) as [`crate::config::PolicyLists::policies`] has
/// it: its name, and the fields of its `spec`. A field that is not known is kept, so that the policy
/// is refused: it might narrow a rule.
#[must_use]
pub fn policy_value(object: &KubernetesObject) -> serde_norway::Value {
    let mut fields = match without_nulls(&object.spec) {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    fields.insert("name".to_owned(), Value::String(object.key().name));
    config_value(&Value::Object(fields))
}
