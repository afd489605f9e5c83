//! An allocation.

use std::collections::BTreeMap;

use control_state::NodeAllocation;
use serde_json::{Map, Value, json};

use super::{links, text_or_null, time};

/// Begin of a stored text that is the JSON of a value. Other texts are themselves.
const AS_JSON: &str = "json:";

/// An allocation.
pub(crate) fn allocation(held: &NodeAllocation, base: &str) -> Value {
    let id = held.id;
    let candidates = held.candidates.iter().map(ToString::to_string);
    let traits = held.traits.iter().map(|name| name.as_str());
    let changed_at = match held.meta.generation {
        0 | 1 => Value::Null,
        _ => time(held.meta.updated_at),
    };
    json!({
        "uuid": id.to_string(),
        "name": held.name,
        "resource_class": held.resource_class.as_str(),
        "state": held.state.as_str(),
        "node_uuid": held.machine.map(|machine| machine.to_string()),
        "owner": held.owner.map(|owner| owner.to_string()),
        "candidate_nodes": candidates.collect::<Vec<String>>(),
        "traits": traits.collect::<Vec<&str>>(),
        "extra": extra(&held.extra),
        "last_error": text_or_null(&held.last_error),
        "created_at": time(held.meta.created_at),
        "updated_at": changed_at,
        "links": links(&format!("{base}/v1/allocations/{id}")),
    })
}

/// The stored form of an additional field: a text as it is, any other value as its JSON.
pub(crate) fn stored_extra(value: &Value) -> String {
    match value {
        Value::String(text) if !text.starts_with(AS_JSON) => text.clone(),
        value => format!("{AS_JSON}{value}"),
    }
}

fn extra(stored: &BTreeMap<String, String>) -> Value {
    let values = stored.iter().map(|(name, text)| {
        let json = text.strip_prefix(AS_JSON);
        // Another API may have stored a text that only looks like one of these.
        let value = json.and_then(|json| serde_json::from_str::<Value>(json).ok());
        (name.clone(), value.unwrap_or_else(|| text.as_str().into()))
    });
    Value::Object(values.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use control_state::{Meta, NodeAllocationState};
    use proto_types::{MachineId, NodeAllocationId, ProjectId, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn held() -> NodeAllocation {
        let at = Timestamp::from_ms(1_795_224_773_548);
        NodeAllocation {
            id: NodeAllocationId::new(Uuid::from_u128(5)),
            meta: Meta {
                created_at: at,
                updated_at: at,
                generation: 1,
                ..Meta::default()
            },
            name: Some("al1".to_owned()),
            owner: Some(ProjectId::new(Uuid::from_u128(9))),
            resource_class: "gold".parse().unwrap(),
            traits: ["CUSTOM_A".parse().unwrap()].into(),
            candidates: [MachineId::new(Uuid::from_u128(7))].into(),
            state: NodeAllocationState::Active,
            machine: Some(MachineId::new(Uuid::from_u128(7))),
            last_error: String::new(),
            extra: BTreeMap::new(),
        }
    }

    #[test]
    fn an_allocation_has_thirteen_fields() {
        let shown = allocation(&held(), "http://c");
        let node = "00000000-0000-0000-0000-000000000007";
        let expected = json!({
            "uuid": "00000000-0000-0000-0000-000000000005",
            "name": "al1",
            "resource_class": "gold",
            "state": "active",
            "node_uuid": node,
            "owner": "00000000-0000-0000-0000-000000000009",
            "candidate_nodes": [node],
            "traits": ["CUSTOM_A"],
            "extra": {},
            "last_error": null,
            "created_at": "2026-11-21T01:32:53.548000+00:00",
            "updated_at": null,
            "links": [{
                "href": "http://c/v1/allocations/00000000-0000-0000-0000-000000000005",
                "rel": "self",
            }],
        });
        assert_eq!(shown, expected);
        let mut failed = held();
        failed.meta.generation = 2;
        failed.last_error = "none is free".to_owned();
        let shown = allocation(&failed, "http://c");
        assert_eq!(shown["last_error"], "none is free");
        assert!(shown["updated_at"].is_string());
    }

    #[test]
    fn additional_fields_come_back() {
        for value in [
            json!("text"),
            json!(""),
            json!("json:1"),
            json!("1"),
            json!(1),
            json!(null),
            json!({"a": [true]}),
        ] {
            let stored = stored_extra(&value);
            let all = BTreeMap::from([("k".to_owned(), stored.clone())]);
            assert_eq!(extra(&all), json!({"k": value}), "{stored}");
        }
        let foreign = BTreeMap::from([("k".to_owned(), "json:{".to_owned())]);
        assert_eq!(extra(&foreign), json!({"k": "json:{"}));
    }
}
