//! Objects of an API server that is made for tests: as much of the protocol as the agent uses.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::watch;

/// Path of a request, taken apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ResourcePath {
    /// `true` second if the path is that of a status.
    pub(crate) fn parse(path: &str) -> Option<(Self, bool)> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let group_len = if parts.first() == Some(&"api") { 2 } else { 3 };
        let (group, rest) = parts.split_at_checked(group_len)?;
        let (namespace, rest) = match rest {
            ["namespaces", namespace, kind, rest @ ..] => (*namespace, [&[*kind], rest].concat()),
            rest => ("", rest.to_vec()),
        };
        let (kind, name, is_status) = match rest.as_slice() {
            [kind] => (*kind, "", false),
            [kind, name] => (*kind, *name, false),
            [kind, name, "status"] => (*kind, *name, true),
            _ => return None,
        };
        let own = Self {
            group: group.join("/"),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Some((own, is_status))
    }

    /// `true` if the other is an object of this list.
    fn lists(&self, other: &Self) -> bool {
        self.group == other.group
            && self.kind == other.kind
            && (self.namespace.is_empty() || self.namespace == other.namespace)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Storage {
    version: watch::Sender<u64>,
    objects: BTreeMap<ResourcePath, Value>,
    events: Vec<(u64, ResourcePath, Value)>,
    is_expired: bool,
}

impl Storage {
    /// Changes with every change of an object.
    pub(crate) fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Ends the next watch that has news as one whose version is too old.
    pub(crate) fn expire(&mut self) {
        self.is_expired = true;
    }

    /// `true` once after that.
    pub(crate) fn take_expired(&mut self) -> bool {
        std::mem::take(&mut self.is_expired)
    }

    fn newest(&self) -> u64 {
        *self.version.borrow()
    }

    /// Carries out a request that is no watch; returns status and body.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let Some((mut at, is_status)) = ResourcePath::parse(path) else {
            return (404, json!({ "message": "no such path" }));
        };
        if method == "POST" {
            at.name = body["metadata"]["name"].as_str().unwrap().to_owned();
        }
        if method == "GET" && at.name.is_empty() {
            return (200, self.list(&at));
        }
        let Some(old) = self.objects.get(&at).cloned() else {
            if method != "POST" {
                return (404, json!({ "message": "not found", "code": 404 }));
            }
            let mut new = body.clone();
            new["metadata"]["namespace"] = json!(at.namespace);
            return (201, self.put("ADDED", at, new));
        };
        match method {
            "GET" => (200, old),
            "DELETE" => {
                self.objects.remove(&at);
                self.record("DELETED", at, old.clone());
                (200, old)
            }
            "PATCH" => {
                let mut new = old.clone();
                for (field, value) in body.as_object().unwrap() {
                    // As with a status as a subresource.
                    if is_status == (field == "status") {
                        merge(&mut new[field], value);
                    }
                }
                if new == old {
                    return (200, old);
                }
                (200, self.put("MODIFIED", at, new))
            }
            _ => (409, json!({ "message": "there is one", "code": 409 })),
        }
    }

    fn list(&self, at: &ResourcePath) -> Value {
        let all = self.objects.iter().filter(|(own, _)| at.lists(own));
        let items: Vec<&Value> = all.map(|(_, object)| object).collect();
        json!({ "metadata": { "resourceVersion": self.newest().to_string() }, "items": items })
    }

    fn put(&mut self, event: &str, at: ResourcePath, mut object: Value) -> Value {
        object["metadata"]["resourceVersion"] = json!((self.newest() + 1).to_string());
        self.objects.insert(at.clone(), object.clone());
        self.record(event, at, object.clone());
        object
    }

    fn record(&mut self, event: &str, at: ResourcePath, mut object: Value) {
        let version = self.newest() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let event = json!({ "type": event, "object": object });
        self.events.push((version, at, event));
        self.version.send_replace(version);
    }

    /// Events of a list after a version, and the newest version.
    pub(crate) fn events_after(&self, at: &ResourcePath, version: u64) -> (Vec<Value>, u64) {
        let new = self.events.iter().filter(|event| event.0 > version);
        let own = new.filter(|event| at.lists(&event.1));
        (own.map(|event| event.2.clone()).collect(), self.newest())
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in fields {
        merge(&mut into[name], value);
    }
}
