//! Documents that describe objects.

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use super::plan::{FieldChange, LABEL};

/// The wanted state of an object.
#[derive(Debug)]
pub(crate) struct ObjectDocument {
    pub(crate) id: String,
    /// Fields in the contract's JSON form, without those at their default.
    pub(super) fields: Map<String, Value>,
    /// `true` if labels that the document leaves out are removed.
    pub(super) is_whole: bool,
}

impl ObjectDocument {
    fn labels(&self) -> Map<String, Value> {
        let own = self
            .fields
            .get("labels")
            .and_then(|labels| labels.get("labels"));
        match own.and_then(Value::as_object) {
            Some(labels) => labels.clone(),
            None => labels_of(&Value::Object(self.fields.clone())),
        }
    }

    /// Labels to add, change or remove.
    pub(super) fn label_changes(&self, there: &Value) -> Vec<FieldChange> {
        let (there, wanted) = (labels_of(there), self.labels());
        let gone = there
            .keys()
            .filter(|key| self.is_whole && !wanted.contains_key(*key));
        let other = wanted
            .iter()
            .filter(|(key, to)| there.get(*key) != Some(*to));
        let keys = other.map(|(key, _)| key).chain(gone);
        keys.map(|key| FieldChange {
            field: format!("{LABEL}{key}"),
            from: there.get(key).cloned().unwrap_or_default(),
            to: wanted.get(key).cloned().unwrap_or_default(),
        })
        .collect()
    }

    /// The document as the whole wanted state, as an editor returns it. Labels that are left out are
    /// removed.
    ///
    /// # Errors
    /// A field that was shown is missing: it is ambiguous whether it should stay or become empty.
    pub(crate) fn whole(mut self, shown: &Map<String, Value>, text: &Value) -> Result<Self> {
        for field in shown.keys() {
            ensure!(
                text.get(field).is_some(),
                "{}: {field}: is missing; to empty a text write {field}: \"\"",
                self.id
            );
        }
        self.is_whole = true;
        Ok(self)
    }
}

pub(super) fn labels_of(object: &Value) -> Map<String, Value> {
    let labels = object.pointer("/meta/labels/labels");
    labels
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}
