//! Objects of free form, as the state stores them.

use control_state::JsonFields;
use control_state::bounds::{JSON_BYTES_MAX, JSON_FIELDS_MAX};
use serde_json::Value;

use crate::error::IronicError;

/// Longest name of a field, bytes; a longer one is refused.
const NAME_BYTES_MAX: usize = 255;

/// Deepest nesting of a stored value, levels; a deeper one is refused. Operations of a patch add levels, and
/// beyond 128 the stored text could not be read any more.
const LEVELS_MAX: usize = 64;

/// Refuses a value that is nested too deeply. `name` is that of its field, for errors.
///
/// # Errors
/// 400.
pub(crate) fn check_levels(name: &str, value: &Value) -> Result<(), IronicError> {
    if !has_more_levels(value, LEVELS_MAX) {
        return Ok(());
    }
    let text = format!("{name}: must be nested at most {LEVELS_MAX} levels deep");
    Err(IronicError::invalid(text))
}

fn has_more_levels(value: &Value, levels: usize) -> bool {
    let has_more = |part: &Value| has_more_levels(part, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(has_more),
        Value::Object(fields) => levels == 0 || fields.values().any(has_more),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The stored form of an object: the JSON of each of its fields. `Null` is an empty object. `name`
/// is that of the field that has the object, for errors.
///
/// # Errors
/// 400 for another value, and for an object beyond its bounds.
pub(crate) fn fields_of(name: &str, value: &Value) -> Result<JsonFields, IronicError> {
    let invalid = |rule: String| IronicError::invalid(format!("{name}: {rule}"));
    let fields = match value {
        Value::Null => return Ok(JsonFields::new()),
        Value::Object(fields) => fields,
        _ => return Err(invalid("must be an object".to_owned())),
    };
    if fields.len() > JSON_FIELDS_MAX {
        let rule = format!("must have at most {JSON_FIELDS_MAX} fields: remove some");
        return Err(invalid(rule));
    }
    let mut stored = JsonFields::new();
    for (field, value) in fields {
        if field.is_empty() || field.len() > NAME_BYTES_MAX {
            let rule = format!("names of fields must have 1 to {NAME_BYTES_MAX} bytes");
            return Err(invalid(rule));
        }
        check_levels(field, value)?;
        let text = value.to_string();
        if text.len() > JSON_BYTES_MAX {
            let rule = format!("{field} must have at most {JSON_BYTES_MAX} bytes as JSON");
            return Err(invalid(rule));
        }
        stored.insert(field.clone(), text);
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn objects_are_stored_field_by_field() {
        let stored = fields_of("extra", &json!({"a": 1, "b": {"c": [null]}, "d": "e"})).unwrap();
        let expected = [("a", "1"), ("b", r#"{"c":[null]}"#), ("d", r#""e""#)];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(stored, JsonFields::from(expected));
        assert!(fields_of("extra", &Value::Null).unwrap().is_empty());
    }

    /// Lists in each other.
    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }

    #[test]
    fn objects_are_bounded() {
        let many = |count: usize| {
            let fields = (0..count).map(|number| (number.to_string(), Value::Null));
            Value::Object(fields.collect::<Map<String, Value>>())
        };
        let long = "x".repeat(JSON_BYTES_MAX);
        let fits = &long[..JSON_BYTES_MAX - 2];
        let name = "n".repeat(NAME_BYTES_MAX + 1);
        for (value, is_accepted) in [
            (many(JSON_FIELDS_MAX), true),
            (many(JSON_FIELDS_MAX + 1), false),
            (json!({ "a": fits }), true),
            (json!({ "a": long }), false),
            (json!({ "a": nested(LEVELS_MAX) }), true),
            (json!({ "a": nested(LEVELS_MAX + 1) }), false),
            (json!({ name: 1 }), false),
            (json!({ "": 1 }), false),
            (json!([]), false),
            (json!("text"), false),
        ] {
            assert_eq!(fields_of("extra", &value).is_ok(), is_accepted);
        }
    }
}
