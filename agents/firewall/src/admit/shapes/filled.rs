use proto_firewall::Violation;
use serde_norway::Value;

/// Refuses a field or an element that has no value. A cluster's objects have none: its source removes
/// them, because there they mean absent.
pub(super) fn refuse_nulls(value: &Value) -> Result<(), Violation> {
    let Some(path) = path_of_null(value) else {
        return Ok(());
    };
    let path = match path.is_empty() {
        true => "the object",
        false => path.as_str(),
    };
    let remedy = "give it one, or remove it";
    Err(Violation::new(path, "it has no value", remedy))
}

/// Refuses empty lists in fields that mean everything if they are left out.
pub(super) fn refuse_empty(value: &Value, fields: &[&str]) -> Result<(), Violation> {
    let mut fields = fields.iter();
    let is_empty = |field: &&&str| {
        let list = value.get(**field).and_then(Value::as_sequence);
        list.is_some_and(Vec::is_empty)
    };
    let Some(field) = fields.find(is_empty) else {
        return Ok(());
    };
    let remedy = "name what the rule is for, or remove the field if it is for everything";
    Err(Violation::new(field, "the list is empty", remedy))
}

/// The way to the first value that is null. Empty means the whole value.
fn path_of_null(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Sequence(list) => list.iter().enumerate().find_map(|(index, inner)| {
            let path = path_of_null(inner)?;
            Some(joined(&format!("[{index}]"), &path))
        }),
        Value::Mapping(fields) => fields.iter().find_map(|(name, inner)| {
            let path = path_of_null(inner)?;
            Some(joined(name.as_str().unwrap_or_default(), &path))
        }),
        Value::Tagged(tagged) => path_of_null(&tagged.value),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn joined(step: &str, rest: &str) -> String {
    match rest.is_empty() || rest.starts_with('[') {
        true => format!("{step}{rest}"),
        false => format!("{step}.{rest}"),
    }
}
