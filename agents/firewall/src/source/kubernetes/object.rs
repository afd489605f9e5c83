use serde::Deserialize;
use serde_json::Value;

use super::KubernetesError;

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace. Empty for objects without one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// The metadata that the agent reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectMeta {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    pub(super) resource_version: String,
}

/// An object, with its content as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct KubernetesObject {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
    /// Its `spec`. Null if it has none.
    #[serde(default)]
    pub spec: Value,
    /// Its `status`. Null if it has none.
    #[serde(default)]
    pub status: Value,
}

impl KubernetesObject {
    /// Reads an object.
    ///
    /// # Errors
    /// It is no object of Kubernetes, or has no name.
    pub fn of(value: Value) -> Result<Self, KubernetesError> {
        let object: Self =
            serde_json::from_value(value).map_err(|error| KubernetesError::malformed(&error))?;
        if object.metadata.name.is_empty() {
            return Err(KubernetesError::Malformed {
                reason: "an object has no name".to_owned(),
            });
        }
        Ok(object)
    }

    /// Its namespace and name.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
        }
    }
}

/// A value without the fields that are null: an API server may keep them, and they mean absent.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, inner)| !inner.is_null())
            .map(|(name, inner)| (name.clone(), without_nulls(inner)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// A value as the configuration has values.
pub(super) fn config_value(value: &Value) -> serde_norway::Value {
    // Nothing in a JSON value cannot be written as YAML.
    serde_norway::to_value(value).unwrap_or(serde_norway::Value::Null)
}
