use serde::Deserialize;
use serde_json::Value;

use super::{KubernetesError, KubernetesObject};

/// A page of a list.
#[derive(Debug)]
pub struct ObjectList {
    /// Objects that can be read.
    pub objects: Vec<KubernetesObject>,
    /// Version of the state that the list shows.
    pub version: String,
    /// Where the next page begins. Empty if there is none.
    pub next: String,
}

/// An event of a watch.
#[derive(Debug, PartialEq)]
pub enum WatchEvent {
    /// An object was added or changed.
    Put(KubernetesObject),
    /// An object was removed.
    Removed(KubernetesObject),
    /// Nothing changed until this version.
    Bookmark(String),
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl ObjectList {
    /// Reads a page.
    ///
    /// # Errors
    /// It is no list, or an object has no name.
    pub fn decode(bytes: &[u8]) -> Result<Self, KubernetesError> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListMeta {
            #[serde(default)]
            resource_version: String,
            #[serde(default, rename = "continue")]
            next: String,
        }
        #[derive(Deserialize)]
        struct RawList {
            #[serde(default)]
            metadata: ListMeta,
            #[serde(default)]
            items: Option<Vec<Value>>,
        }
        let raw: RawList =
            serde_json::from_slice(bytes).map_err(|error| KubernetesError::malformed(&error))?;
        let items = raw.items.into_iter().flatten();
        Ok(Self {
            objects: items
                .map(KubernetesObject::of)
                .collect::<Result<Vec<_>, _>>()?,
            version: raw.metadata.resource_version,
            next: raw.metadata.next,
        })
    }
}

impl WatchEvent {
    /// Reads a line of a watch. `what` is the watch, for errors.
    ///
    /// # Errors
    /// It is no event, or the server ends the watch with an error.
    pub fn decode(line: &[u8], what: &str) -> Result<Self, KubernetesError> {
        let raw: RawEvent =
            serde_json::from_slice(line).map_err(|error| KubernetesError::malformed(&error))?;
        match raw.kind.as_str() {
            "ADDED" | "MODIFIED" => KubernetesObject::of(raw.object).map(Self::Put),
            "DELETED" => KubernetesObject::of(raw.object).map(Self::Removed),
            "BOOKMARK" => {
                let version = raw.object.pointer("/metadata/resourceVersion");
                let version = version.and_then(Value::as_str);
                Ok(Self::Bookmark(version.unwrap_or_default().to_owned()))
            }
            "ERROR" => Err(KubernetesError::of_event(
                what,
                raw.object.to_string().as_bytes(),
            )),
            other => Err(KubernetesError::Malformed {
                reason: format!("there is no event {:?}", proto_firewall::printable(other)),
            }),
        }
    }

    /// Version of the state after the event. Empty if the server names none.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Self::Put(object) | Self::Removed(object) => &object.metadata.resource_version,
            Self::Bookmark(version) => version,
        }
    }
}
