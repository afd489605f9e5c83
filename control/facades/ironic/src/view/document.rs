//! Documents: chassis, deploy templates and runbooks.

use control_state::{Meta, NodeDocument};
use serde_json::{Map, Value, json};

use super::{links, object_of, time};
use crate::version::ApiVersion;

/// Microversion from which runbooks have traits and a description.
const RUNBOOK_TRAITS: u16 = 112;

/// A chassis.
pub(crate) fn chassis(document: &NodeDocument, base: &str) -> Value {
    let fields = object_of(&document.fields);
    let address = format!("{base}/v1/chassis/{}", document.id);
    let mut shown = head(document, &address);
    shown.insert("description".to_owned(), field(&fields, "description"));
    shown.insert("extra".to_owned(), object(&fields, "extra"));
    shown.insert("nodes".to_owned(), links(&format!("{address}/nodes")));
    Value::Object(shown)
}

/// A deploy template.
pub(crate) fn deploy_template(document: &NodeDocument, base: &str) -> Value {
    let fields = object_of(&document.fields);
    let address = format!("{base}/v1/deploy_templates/{}", document.id);
    let mut shown = head(document, &address);
    shown.insert("name".to_owned(), document.name.as_str().into());
    shown.insert("extra".to_owned(), object(&fields, "extra"));
    shown.insert("steps".to_owned(), list(&fields, "steps"));
    Value::Object(shown)
}

/// A runbook.
pub(crate) fn runbook(document: &NodeDocument, version: ApiVersion, base: &str) -> Value {
    let fields = object_of(&document.fields);
    let address = format!("{base}/v1/runbooks/{}", document.id);
    let owner = document.owner.map(|project| project.to_string());
    let is_without_ramdisk = fields["disable_ramdisk"].as_bool().unwrap_or(false);
    let mut shown = head(document, &address);
    shown.insert("name".to_owned(), document.name.as_str().into());
    shown.insert("extra".to_owned(), object(&fields, "extra"));
    shown.insert("steps".to_owned(), list(&fields, "steps"));
    shown.insert("public".to_owned(), document.public.into());
    shown.insert("owner".to_owned(), owner.into());
    shown.insert("disable_ramdisk".to_owned(), is_without_ramdisk.into());
    if version.has(RUNBOOK_TRAITS) {
        shown.insert("description".to_owned(), field(&fields, "description"));
        shown.insert("traits".to_owned(), list(&fields, "traits"));
    }
    Value::Object(shown)
}

/// The time of the last change; `null` for an object that was never changed.
fn changed_at(meta: &Meta) -> Value {
    match meta.generation {
        0 | 1 => Value::Null,
        _ => time(meta.updated_at),
    }
}

fn head(document: &NodeDocument, address: &str) -> Map<String, Value> {
    Map::from_iter([
        ("uuid".to_owned(), document.id.to_string().into()),
        ("created_at".to_owned(), time(document.meta.created_at)),
        ("updated_at".to_owned(), changed_at(&document.meta)),
        ("links".to_owned(), links(address)),
    ])
}

fn field(fields: &Value, name: &str) -> Value {
    fields.get(name).cloned().unwrap_or(Value::Null)
}

fn object(fields: &Value, name: &str) -> Value {
    match fields.get(name) {
        Some(Value::Object(found)) => Value::Object(found.clone()),
        _ => json!({}),
    }
}

fn list(fields: &Value, name: &str) -> Value {
    match fields.get(name) {
        Some(Value::Array(found)) => Value::Array(found.clone()),
        _ => json!([]),
    }
}

#[cfg(test)]
mod tests {
    use control_state::{DocumentKind, JsonFields};
    use proto_types::{ProjectId, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn document(kind: DocumentKind, fields: &[(&str, &str)]) -> NodeDocument {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        NodeDocument {
            id: Uuid::from_u128(7),
            meta: Meta {
                created_at: Timestamp::from_ms(1_795_224_773_548),
                updated_at: Timestamp::from_ms(1_795_224_773_548),
                generation: 1,
                ..Meta::default()
            },
            kind,
            name: "CUSTOM_A".to_owned(),
            owner: Some(ProjectId::new(Uuid::from_u128(9))),
            public: false,
            fields: fields.iter().map(owned).collect::<JsonFields>(),
        }
    }

    #[test]
    fn a_chassis_has_links_to_itself_and_its_nodes() {
        let fields = [("description", "\"hall 1\"")];
        let shown = chassis(&document(DocumentKind::Chassis, &fields), "http://c");
        let own = "http://c/v1/chassis/00000000-0000-0000-0000-000000000007";
        assert_eq!(shown["links"][0]["href"], own);
        assert_eq!(shown["nodes"][0]["href"], format!("{own}/nodes"));
        assert_eq!(shown["description"], "hall 1");
        assert_eq!(shown["extra"], json!({}));
        assert!(shown["updated_at"].is_null() && shown["created_at"].is_string());
    }

    #[test]
    fn a_changed_document_has_a_time_of_change() {
        let mut changed = document(DocumentKind::DeployTemplate, &[("steps", "[{\"step\":1}]")]);
        changed.meta.generation = 2;
        let shown = deploy_template(&changed, "http://c");
        assert!(shown["updated_at"].is_string());
        assert_eq!(shown["steps"], json!([{"step": 1}]));
        assert_eq!(shown["name"], "CUSTOM_A");
    }

    #[test]
    fn traits_of_runbooks_are_as_old_as_their_microversion() {
        let stored = document(DocumentKind::Runbook, &[("traits", "[\"CUSTOM_B\"]")]);
        let old = runbook(&stored, ApiVersion::of(111), "http://c");
        assert!(old.get("traits").is_none() && old.get("description").is_none());
        let new = runbook(&stored, ApiVersion::of(112), "http://c");
        assert_eq!(new["traits"], json!(["CUSTOM_B"]));
        assert!(new["description"].is_null());
        assert_eq!(new["disable_ramdisk"], false);
        assert_eq!(new["owner"], "00000000-0000-0000-0000-000000000009");
    }
}
