//! Violations of validation rules, as they go to the client.

use prost::Message;
use proto_public::Violation;

use crate::wire_path::WirePath;

/// `buf.validate.Violations`, as clients of the contract expect it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WireViolations {
    #[prost(message, repeated, tag = "1")]
    pub(crate) violations: Vec<WireViolation>,
}

/// `buf.validate.Violation`: the field, its rule and a message.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WireViolation {
    #[prost(string, tag = "2")]
    rule_id: String,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(message, optional, tag = "5")]
    field: Option<WirePath>,
}

impl WireViolation {
    /// A violation as the client gets it.
    pub(crate) fn of(violation: &Violation) -> Self {
        Self {
            rule_id: violation.rule.to_owned(),
            message: violation.message.clone(),
            field: Some(WirePath::of(&violation.field)),
        }
    }
}
