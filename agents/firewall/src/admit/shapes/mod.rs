//! The objects of the static source as they are written, with the names of the published CRDs. An
//! unknown field is refused: without it a rule could be wider than it was meant to be.

mod filled;
mod rule;
mod service;

use proto_firewall::{Violation, printable};
use serde::de::DeserializeOwned;
use serde_norway::Value;

use filled::{refuse_empty, refuse_nulls};
pub(super) use rule::{RuleShape, decode_rule};
pub(super) use service::decode_service;

fn all<A, B: From<A>>(shapes: Vec<A>) -> Vec<B> {
    shapes.into_iter().map(B::from).collect()
}

/// Reads an object. A field without a value is refused: absent, it may mean everything.
pub(super) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Violation> {
    refuse_nulls(value)?;
    T::deserialize(value).map_err(|error| {
        let text = error.to_string();
        let (field, problem) = match text.split_once(": ") {
            Some((path, rest)) if !path.contains(' ') => (path, rest),
            _ => ("the object", text.as_str()),
        };
        let remedy = "write it as docs/reference/firewall.md shows it";
        Violation::new(field, problem, remedy)
    })
}

/// The same violation of a field that it does not name.
pub(super) fn in_field(field: &str, violation: Violation) -> Violation {
    Violation {
        field: printable(field),
        ..violation
    }
}
