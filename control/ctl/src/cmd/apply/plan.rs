//! The difference between a document and the object that it describes, as one request.

use serde_json::{Map, Value, json};

/// Prefix of [`FieldChange::field`] for a label.
pub(super) const LABEL: &str = "label ";

/// A change of one field or label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldChange {
    pub(crate) field: String,
    pub(crate) from: Value,
    pub(crate) to: Value,
}

/// The call that makes an object what its document says.
#[derive(Debug)]
pub(crate) struct ApplyPlan {
    /// The method's path and its request. `None` means the object is as wanted.
    pub(crate) call: Option<(&'static str, Value)>,
    /// Changes of an existing object. Empty means it is created, or as wanted.
    pub(crate) changes: Vec<FieldChange>,
}

pub(super) fn label_patch(changes: &[FieldChange]) -> Value {
    let (gone, set): (Vec<&FieldChange>, Vec<&FieldChange>) =
        changes.iter().partition(|change| change.to.is_null());
    let key = |change: &FieldChange| change.field.trim_start_matches(LABEL).to_owned();
    let set: Map<String, Value> = set
        .iter()
        .map(|change| (key(change), change.to.clone()))
        .collect();
    let gone: Vec<String> = gone.iter().map(|change| key(change)).collect();
    let mut patch = Map::new();
    if !set.is_empty() {
        patch.insert("update".to_owned(), json!({ "labels": set }));
    }
    if !gone.is_empty() {
        patch.insert("remove".to_owned(), json!(gone));
    }
    json!({ "patch": patch })
}

/// Optimistic lock: the server refuses the update if the object was changed since it was read.
pub(super) fn lock(there: &Value) -> Value {
    match there.pointer("/meta/updatedAt") {
        Some(at) => json!({
            "updatedAt": at, "lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_CLIENT",
        }),
        None => json!({ "lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER" }),
    }
}

/// `true` if two values are equal in the contract: lists of strings have no order, and an absent
/// field equals its default.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    let is_default = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    };
    let words = |value: &Value| -> Option<Vec<String>> {
        let all = value.as_array()?.iter();
        let mut words: Vec<String> = all
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<_>>()?;
        words.sort();
        Some(words)
    };
    match (words(one), words(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other || (is_default(one) && is_default(other)),
    }
}
