//! Fields of ports and port groups that are stored as JSON.

use control_state::JsonFields;
use control_state::bounds::JSON_BYTES_MAX;
use serde_json::Value;

use crate::error::IronicError;
use crate::patch::{ObjectReader, fields_of};

/// Fields of a local link connection.
const LINK_FIELDS: [&str; 7] = [
    "hostname",
    "network_type",
    "port_id",
    "switch_id",
    "switch_info",
    "vtep-logical-switch",
    "vtep-physical-switch",
];
/// Fields that tell the other end of a link, beside the port.
const LINK_ENDS: [&str; 3] = ["hostname", "switch_id", "vtep-physical-switch"];

/// The kind of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortFieldKind {
    /// An object of free form.
    Object,
    /// A boolean.
    Flag,
    /// A text of at most so many bytes.
    Text(usize),
    /// The switch port at the other end of the cable.
    LocalLink,
}

/// The stored fields after a change. A field that has the value of before stays as it is stored, so that
/// a field which follows from the hardware goes on doing so.
///
/// # Errors
/// 400, which names the field and its rule.
pub(super) fn written_fields(
    kinds: &[(&str, PortFieldKind)],
    before: &Value,
    after: &Value,
    stored: &JsonFields,
) -> Result<JsonFields, IronicError> {
    let (before, after) = (ObjectReader::new(before), ObjectReader::new(after));
    let mut written = stored.clone();
    for (name, kind) in kinds {
        if before.value(name) == after.value(name) {
            continue;
        }
        match checked(name, *kind, after)? {
            Value::Null => written.remove(*name),
            value => {
                let text = value.to_string();
                if text.len() > JSON_BYTES_MAX {
                    let text = format!("{name}: must have at most {JSON_BYTES_MAX} bytes as JSON");
                    return Err(IronicError::invalid(text));
                }
                written.insert((*name).to_owned(), text)
            }
        };
    }
    Ok(written)
}

/// The value of a field as it is stored; `Null` if it is unset.
fn checked(
    name: &str,
    kind: PortFieldKind,
    object: ObjectReader<'_>,
) -> Result<Value, IronicError> {
    match kind {
        PortFieldKind::Flag => {
            let flag = object.flag(name)?;
            Ok(flag.map_or(Value::Null, Value::Bool))
        }
        PortFieldKind::Text(bytes_max) => text(name, bytes_max, object),
        PortFieldKind::Object => {
            let value = object.value(name);
            fields_of(name, value)?;
            Ok(value.clone())
        }
        PortFieldKind::LocalLink => {
            let value = object.value(name);
            if !value.is_null() {
                check_link(name, value)?;
            }
            Ok(value.clone())
        }
    }
}

fn text(name: &str, bytes_max: usize, object: ObjectReader<'_>) -> Result<Value, IronicError> {
    let Some(text) = object.text(name)? else {
        return Ok(Value::Null);
    };
    if text.is_empty() || text.len() > bytes_max {
        let text = format!("{name}: must have 1 to {bytes_max} bytes, or be null");
        return Err(IronicError::invalid(text));
    }
    Ok(text.into())
}

/// Refuses a link that names no other end. An empty one is none.
fn check_link(name: &str, link: &Value) -> Result<(), IronicError> {
    let refused = |rule: String| IronicError::invalid(format!("{name}: {rule}"));
    let Value::Object(fields) = link else {
        return Err(refused("must be an object".to_owned()));
    };
    for (field, value) in fields {
        if !LINK_FIELDS.contains(&field.as_str()) || !value.is_string() {
            let known = LINK_FIELDS.join(", ");
            return Err(refused(format!("must have texts alone, named {known}")));
        }
    }
    let has = |field: &str| fields.contains_key(field);
    let is_unmanaged = fields
        .get("network_type")
        .is_some_and(|kind| kind == "unmanaged");
    let is_complete = has("port_id") && LINK_ENDS.iter().any(|end| has(end));
    if fields.is_empty() || is_unmanaged || is_complete {
        return Ok(());
    }
    let rule = "must have port_id, and switch_id or hostname; or network_type unmanaged";
    Err(refused(rule.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KINDS: [(&str, PortFieldKind); 4] = [
        ("extra", PortFieldKind::Object),
        ("pxe_enabled", PortFieldKind::Flag),
        ("vendor", PortFieldKind::Text(4)),
        ("link", PortFieldKind::LocalLink),
    ];

    fn written(field: &str, value: Value) -> Result<JsonFields, String> {
        let before = json!({"extra": {}, "pxe_enabled": true, "vendor": "nic", "link": {}});
        let mut after = before.clone();
        after[field] = value;
        let stored = JsonFields::from([("extra".to_owned(), "{}".to_owned())]);
        written_fields(&KINDS, &before, &after, &stored).map_err(|error| error.text)
    }

    #[test]
    fn only_what_changed_is_stored() {
        let extra = ("extra", "{}");
        for (field, value, expected) in [
            ("vendor", json!("nic"), vec![extra]),
            ("vendor", json!("x"), vec![extra, ("vendor", r#""x""#)]),
            ("vendor", Value::Null, vec![extra]),
            (
                "pxe_enabled",
                json!("False"),
                vec![extra, ("pxe_enabled", "false")],
            ),
            ("extra", Value::Null, vec![]),
            ("extra", json!({"a": 1}), vec![("extra", r#"{"a":1}"#)]),
            (
                "link",
                json!({"port_id": "e1", "switch_id": "s"}),
                vec![extra, ("link", r#"{"port_id":"e1","switch_id":"s"}"#)],
            ),
            (
                "link",
                json!({"network_type": "unmanaged"}),
                vec![extra, ("link", r#"{"network_type":"unmanaged"}"#)],
            ),
        ] {
            let expected = expected.into_iter();
            let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
            let found = written(field, value.clone()).unwrap();
            assert_eq!(found, expected.collect::<JsonFields>(), "{field} {value}");
        }
    }

    #[test]
    fn malformed_fields_are_named() {
        for (field, value, part) in [
            (
                "vendor",
                json!("long text"),
                "vendor: must have 1 to 4 bytes",
            ),
            ("vendor", json!(""), "vendor: must have 1 to 4 bytes"),
            ("vendor", json!(1), "vendor: must be a text"),
            ("pxe_enabled", json!(1), "pxe_enabled: must be a boolean"),
            ("extra", json!([]), "extra: must be an object"),
            ("link", json!("e1"), "link: must be an object"),
            (
                "link",
                json!({"port_id": "e1"}),
                "link: must have port_id, and",
            ),
            ("link", json!({"port": "e1"}), "link: must have texts alone"),
            (
                "link",
                json!({"port_id": 1, "switch_id": "s"}),
                "texts alone",
            ),
        ] {
            let refused = written(field, value).unwrap_err();
            assert!(refused.contains(part), "{field}: {refused}");
        }
        let long = json!({"a": "x".repeat(JSON_BYTES_MAX - 8), "b": 1});
        assert!(written("extra", long).is_err());
    }
}
