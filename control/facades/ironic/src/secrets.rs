//! Secrets in requests, which no record of a call keeps.

use serde_json::Value;

/// Parts of names whose values are secrets.
const SECRET_WORDS: [&str; 6] = [
    "password",
    "secret",
    "token",
    "configdrive",
    "user_data",
    "private_key",
];
/// The text in place of a secret, as Ironic shows it.
pub(crate) const MASK: &str = "******";

/// `true` if the value of a field of this name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// A body without its secrets: fields by their names, operations of JSON Patch by their paths.
pub(crate) fn without_secrets(body: &Value) -> Value {
    match body {
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::Object(fields) => {
            let path = fields.get("path").and_then(Value::as_str);
            let is_secret_path = path.is_some_and(is_secret);
            let masked = fields.iter().map(|(name, value)| {
                let hides = is_secret(name) || (is_secret_path && name == "value");
                let value = if hides {
                    MASK.into()
                } else {
                    without_secrets(value)
                };
                (name.clone(), value)
            });
            Value::Object(masked.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_bodies_and_patches_are_masked() {
        for (body, expected) in [
            (
                json!({"target": "active", "configdrive": {"user_data": "x"}}),
                json!({"target": "active", "configdrive": MASK}),
            ),
            (
                json!([{"op": "add", "path": "/driver_info/redfish_password", "value": "x"}]),
                json!([{"op": "add", "path": "/driver_info/redfish_password", "value": MASK}]),
            ),
            (
                json!({"driver_info": {"ipmi_Password": "x", "ipmi_address": "10.0.0.1"}}),
                json!({"driver_info": {"ipmi_Password": MASK, "ipmi_address": "10.0.0.1"}}),
            ),
            (
                json!([{"op": "replace", "path": "/extra/a", "value": 1}]),
                json!([{"op": "replace", "path": "/extra/a", "value": 1}]),
            ),
            (Value::Null, Value::Null),
        ] {
            assert_eq!(without_secrets(&body), expected);
        }
    }
}
