//! Parts that many objects share.

use control_state::JsonFields;
use serde_json::{Map, Value, json};

/// The text, or `null` for an empty one.
pub(crate) fn text_or_null(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => text.into(),
    }
}

/// An object out of stored fields. A text that is no JSON would be a damaged row; it becomes `null`.
pub(crate) fn object_of(fields: &JsonFields) -> Value {
    let values = fields.iter().map(|(name, text)| {
        let value = serde_json::from_str(text).unwrap_or(Value::Null);
        (name.clone(), value)
    });
    Value::Object(values.collect::<Map<String, Value>>())
}

/// One link.
pub(crate) fn link(address: &str, relation: &str) -> Value {
    json!({ "href": address, "rel": relation })
}

/// The field `links` of an object with this address.
pub(crate) fn links(address: &str) -> Value {
    json!([link(address, "self")])
}
