//! The place of what is wrong in JSON that people wrote.
//!
//! The parser knows lines and columns only, which are those of a text that nobody has seen when the
//! JSON was made of YAML.

use std::fmt;

use prost_reflect::MessageDescriptor;
use serde_json::{Map, Value};

use crate::RefusedField;
use crate::json::{JsonError, field, parse_strict};

/// The reason why a JSON value is not one of a message. `None` means that it is.
type Judge = fn(&MessageDescriptor, &Value) -> Option<String>;

/// The first field of a JSON value that a message cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The way to the field, from the outside in. Empty means the whole value.
    pub path: Vec<FieldStep>,
    /// The parser's reason.
    pub reason: String,
}

/// A step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// Into a field of an object.
    Field(String),
    /// Into an element of a list, from 0.
    Index(usize),
}

impl FieldFault {
    /// The innermost field that is wrong. `None` if the value is one of the message.
    ///
    /// For the command line, not for requests: it parses each part once for each level around it.
    #[must_use]
    pub fn find(message: &MessageDescriptor, value: &Value) -> Option<Self> {
        Self::find_by(reason, message, value)
    }

    /// As [`Self::find`], also fields without a value, and empty lists that would mean everything if
    /// they were left out: the faults for which a method of our own refuses a request.
    #[must_use]
    pub fn find_strict(message: &MessageDescriptor, value: &Value) -> Option<Self> {
        Self::find_by(strict_reason, message, value)
    }

    fn find_by(reason: Judge, message: &MessageDescriptor, value: &Value) -> Option<Self> {
        let Value::Object(fields) = value else {
            let reason = reason(message, value)?;
            return Some(Self {
                path: Vec::new(),
                reason,
            });
        };
        let mut fields = fields.iter();
        fields.find_map(|(name, value)| Self::find_in(reason, message, name, value))
    }

    fn find_in(
        reason: Judge,
        message: &MessageDescriptor,
        name: &str,
        value: &Value,
    ) -> Option<Self> {
        // Each field is parsed alone, and each element of a list: the one that fails has the fault.
        let alone = |value: Value| {
            let object = Map::from_iter([(name.to_owned(), value)]);
            reason(message, &Value::Object(object))
        };
        let mut fault = Self {
            reason: alone(value.clone())?,
            path: vec![FieldStep::Field(name.to_owned())],
        };
        let mut inner = value;
        if let Value::Array(elements) = value {
            let faulty = |(index, element): (usize, &Value)| {
                let reason = alone(Value::Array(vec![element.clone()]))?;
                Some((index, reason))
            };
            if let Some((index, reason)) = elements.iter().enumerate().find_map(faulty) {
                fault.path.push(FieldStep::Index(index));
                fault.reason = reason;
                inner = &elements[index];
            }
        }
        let kind = field(message, name).filter(|field| !field.is_map());
        let kind = kind.and_then(|field| field.kind().as_message().cloned());
        if let (Some(kind), Value::Object(_)) = (kind, inner)
            && let Some(found) = Self::find_by(reason, &kind, inner)
        {
            fault.path.extend(found.path);
            fault.reason = found.reason;
        }
        Some(fault)
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => out.write_str("the whole")?,
            false => out.write_str(&path_text(&self.path))?,
        }
        write!(out, ": {}", self.reason)
    }
}

/// Steps as people write them: `cwnp.egress[0]`.
#[must_use]
pub fn path_text(path: &[FieldStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            FieldStep::Index(index) => text += &format!("[{index}]"),
            FieldStep::Field(name) if text.is_empty() => text += name,
            FieldStep::Field(name) => text += &format!(".{name}"),
        }
    }
    text
}

/// The parser's reason, without line and column.
fn reason(message: &MessageDescriptor, value: &Value) -> Option<String> {
    let error = parse_strict(message, value.to_string().as_bytes()).err()?;
    let text = match error {
        JsonError::Json { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let reason = text.rsplit_once(" at line ").map(|(reason, _)| reason);
    Some(reason.unwrap_or(&text).to_owned())
}

/// The parser's reason, or that of methods of our own.
fn strict_reason(message: &MessageDescriptor, value: &Value) -> Option<String> {
    reason(message, value).or_else(|| {
        let refused = RefusedField::find(message, value.to_string().as_bytes());
        refused.map(|refused| refused.reason)
    })
}

#[cfg(test)]
mod tests {
    use super::FieldFault;

    #[test]
    fn a_field_without_a_value_is_a_fault_of_our_own_methods_alone() {
        let message = crate::message("metalmesh.admin.v1.FirewallRuleContent").unwrap();
        for (text, expected) in [
            (
                r#"{"cwnp": {"egress": [{"to": [{"cidr": "::/0"}]}]}}"#,
                None,
            ),
            (
                r#"{"cwnp": {"egress": [{}, {"ports": []}]}}"#,
                Some("cwnp.egress[1].ports: the list is empty"),
            ),
            (
                r#"{"cwnp": {"egress": [{"ports": [{"port": null}]}]}}"#,
                Some("cwnp.egress[0].ports[0].port: it has no value"),
            ),
            (
                r#"{"cwnp": {"egress": null}}"#,
                Some("cwnp.egress: it has no value"),
            ),
            (r#"{"cwnp": null}"#, Some("cwnp: it has no value")),
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(FieldFault::find(&message, &value), None, "{text}");
            let found = FieldFault::find_strict(&message, &value).map(|fault| fault.to_string());
            let fits = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(fits, "{text}: {found:?}");
        }
    }

    #[test]
    fn the_field_is_named() {
        let message = crate::message("metalmesh.admin.v1.FirewallRuleContent").unwrap();
        for (text, expected) in [
            ("{}", None),
            (r#"{"cwnp": {"egress": [{"ports": [{"port": 80}]}]}}"#, None),
            (
                r#"{"cwnp": {"egress": [{}, {"ports": [{"port": 80}, {"port": "http"}]}]}}"#,
                Some("cwnp.egress[1].ports[1].port: "),
            ),
            (
                r#"{"cwnp": {"egres": []}}"#,
                Some("cwnp.egres: unrecognized field"),
            ),
            (r#"{"service": {}}"#, Some("service: ")),
            (r#"{"service": [7]}"#, Some("service[0]: ")),
            (
                r#"{"firewall": {"rules": [{"to": [{"cidr": 10}]}]}}"#,
                Some("firewall.rules[0].to[0].cidr: "),
            ),
            (r#"{"firewall": 7}"#, Some("firewall: ")),
            ("7", Some("the whole: ")),
        ] {
            let value = serde_json::from_str(text).unwrap();
            let found = FieldFault::find(&message, &value).map(|fault| fault.to_string());
            let fits = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(fits, "{text}: {found:?}");
        }
    }
}
