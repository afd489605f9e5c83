//! Steps of deploy templates and runbooks.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::IronicError;
use crate::secrets::without_secrets;

/// The interfaces that steps can name.
const INTERFACES: [&str; 7] = [
    "bios",
    "deploy",
    "firmware",
    "management",
    "power",
    "raid",
    "vendor",
];

/// The steps of a template: their order is the field `priority`, and each has arguments.
pub(super) fn template_steps(value: &Value) -> Result<Value, IronicError> {
    steps(value, "priority", true)
}

/// The steps of a runbook: their order is the field `order`.
pub(super) fn runbook_steps(value: &Value) -> Result<Value, IronicError> {
    steps(value, "order", false)
}

/// The steps to store: without secrets in their arguments, which are in no answer.
///
/// # Errors
/// 400 for steps that are malformed, unknown or twice there.
fn steps(value: &Value, order: &str, needs_arguments: bool) -> Result<Value, IronicError> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let Some(list) = list else {
        return Err(IronicError::invalid(
            "steps: must be a list of at least one step",
        ));
    };
    let mut seen = BTreeSet::new();
    let mut stored = Vec::new();
    for entry in list {
        let Value::Object(fields) = entry else {
            return Err(IronicError::invalid("steps: each must be an object"));
        };
        let step = step(fields, order, needs_arguments)?;
        let name = (text(fields, "interface")?, text(fields, "step")?);
        if !seen.insert(name) {
            let (interface, step) = name;
            return Err(IronicError::invalid(format!(
                "steps: interface: {interface}, step: {step} is there twice; name each step once"
            )));
        }
        stored.push(step);
    }
    Ok(Value::Array(stored))
}

fn step(
    fields: &Map<String, Value>,
    order: &str,
    needs_arguments: bool,
) -> Result<Value, IronicError> {
    let known = ["interface", "step", "args", order];
    if let Some(other) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        let text = format!("steps: a step has no field '{other}'");
        return Err(IronicError::invalid(text));
    }
    let interface = text(fields, "interface")?;
    if !INTERFACES.contains(&interface) {
        let known = INTERFACES.join(", ");
        let text = format!("steps: interface '{interface}' is not one of {known}");
        return Err(IronicError::invalid(text));
    }
    let arguments = match fields.get("args") {
        Some(arguments @ Value::Object(_)) => without_secrets(arguments),
        None if !needs_arguments => json!({}),
        _ => return Err(IronicError::invalid("steps: args must be an object")),
    };
    let number = number(fields.get(order)).ok_or_else(|| {
        IronicError::invalid(format!("steps: {order} must be a number, not below 0"))
    })?;
    let mut stored = json!({
        "interface": interface,
        "step": text(fields, "step")?,
        "args": arguments,
    });
    stored[order] = number.into();
    Ok(stored)
}

fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Result<&'v str, IronicError> {
    let text = fields.get(name).and_then(Value::as_str);
    let text = text.filter(|text| !text.is_empty());
    text.ok_or_else(|| IronicError::invalid(format!("steps: {name} must be a text")))
}

/// A number, or the text of one.
fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) if text.bytes().all(|digit| digit.is_ascii_digit()) => {
            text.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(order: &str) -> Value {
        json!({"interface": "bios", "step": "apply", "args": {"a": 1}, order: 10})
    }

    #[test]
    fn steps_are_stored_without_secrets() {
        let mut step = entry("priority");
        step["args"]["admin_password"] = "x".into();
        step["priority"] = "7".into();
        let stored = template_steps(&json!([step])).unwrap();
        assert_eq!(stored[0]["args"]["admin_password"], "******");
        assert_eq!(stored[0]["args"]["a"], 1);
        assert_eq!(stored[0]["priority"], 7);
        let bare = json!({"interface": "raid", "step": "noop", "order": 0});
        assert_eq!(runbook_steps(&json!([bare])).unwrap()[0]["args"], json!({}));
    }

    #[test]
    fn malformed_steps_are_refused() {
        let with = |name: &str, value: Value| {
            let mut step = entry("priority");
            step[name] = value;
            json!([step])
        };
        for (steps, reason) in [
            (json!({}), "at least one step"),
            (json!([]), "at least one step"),
            (json!([7]), "each must be an object"),
            (json!([entry("order")]), "no field 'order'"),
            (
                json!([entry("priority"), entry("priority")]),
                "is there twice",
            ),
            (with("interface", json!("nonsense")), "is not one of"),
            (with("interface", Value::Null), "interface must be a text"),
            (with("step", json!("")), "step must be a text"),
            (with("args", json!([])), "args must be an object"),
            (with("priority", json!(-1)), "priority must be a number"),
            (with("priority", json!("")), "priority must be a number"),
            (with("priority", json!(1.5)), "priority must be a number"),
        ] {
            let refused = template_steps(&steps).unwrap_err();
            assert!(refused.text.contains(reason), "{steps}: {}", refused.text);
        }
    }
}
