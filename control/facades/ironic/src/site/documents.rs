//! The part that all documents share: finding, listing and storing them.

use std::sync::Arc;

use control_gate::refusal::of_state;
use control_state::bounds::JSON_BYTES_MAX;
use control_state::query::document_named;
use control_state::{DocumentKind, JsonFields, NodeDocument, SetNodeDocument, Tables};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::IronicError;
use crate::listing::{ListQuery, ListRow, SortValue};
use crate::patch::{ObjectReader, check_levels};
use crate::request::IronicCall;
use crate::view::object_of;

/// The field of free form.
const EXTRA: &str = "extra";
/// Longest description, characters.
const DESCRIPTION_LEN_MAX: usize = 255;

/// The document of this id or name.
pub(super) fn find<'t>(
    tables: &'t Tables,
    kind: DocumentKind,
    ident: &str,
) -> Option<&'t Arc<NodeDocument>> {
    match Uuid::parse_str(ident) {
        Ok(id) => {
            let found = tables.get::<NodeDocument>(&id);
            found.filter(|document| document.kind == kind)
        }
        Err(_) => document_named(tables, kind, ident),
    }
}

/// A row of a list. `make` makes its JSON.
pub(super) fn row<'t>(
    document: &'t NodeDocument,
    query: &ListQuery,
    make: impl FnOnce() -> Value + Send + 't,
) -> ListRow<'t> {
    ListRow {
        key: document.id.to_string(),
        sort: sort_value(document, &query.sort_key),
        make: Box::new(make),
    }
}

/// Stores a document that a rule permitted before.
pub(super) async fn store(
    call: &IronicCall<'_>,
    op: SetNodeDocument,
) -> Result<Arc<NodeDocument>, IronicError> {
    let reply = call.propose(op).await?;
    Ok(reply.node_document().map_err(of_state)?)
}

/// The change of a document that was read before; `content` are its name and fields, which replace
/// those of before.
pub(super) fn change(before: &NodeDocument, name: String, fields: JsonFields) -> SetNodeDocument {
    SetNodeDocument {
        id: before.id,
        kind: before.kind,
        expected: before.meta.generation,
        name,
        owner: before.owner,
        public: before.public,
        fields,
    }
}

/// The stored fields of these names as an object to patch; `null` where they are unset. An unset
/// `extra` is empty, so that a patch can add to it.
pub(super) fn to_patch(document: &NodeDocument, names: &[&str]) -> Value {
    let stored = object_of(&document.fields);
    let mut object = json!({});
    for name in names {
        object[*name] = match &stored[*name] {
            Value::Null if *name == EXTRA => json!({}),
            value => value.clone(),
        };
    }
    object
}

/// Puts a value into the fields of a document.
///
/// # Errors
/// 400 beyond the bound.
pub(super) fn put(fields: &mut JsonFields, name: &str, value: &Value) -> Result<(), IronicError> {
    if value.is_null() {
        return Ok(());
    }
    check_levels(name, value)?;
    let text = value.to_string();
    if text.len() > JSON_BYTES_MAX {
        let text = format!("{name}: must have at most {JSON_BYTES_MAX} bytes as JSON");
        return Err(IronicError::invalid(text));
    }
    fields.insert(name.to_owned(), text);
    Ok(())
}

/// Puts the description of an object into the fields of its document.
///
/// # Errors
/// 400 for another value than a text, and for one that is too long.
pub(super) fn put_description(
    fields: &mut JsonFields,
    reader: ObjectReader<'_>,
) -> Result<(), IronicError> {
    let Some(text) = reader.text("description")? else {
        return Ok(());
    };
    if text.chars().count() > DESCRIPTION_LEN_MAX {
        let text = format!("description: must have at most {DESCRIPTION_LEN_MAX} characters");
        return Err(IronicError::invalid(text));
    }
    put(fields, "description", &text.into())
}

/// Puts the field `extra` of an object into the fields of its document.
///
/// # Errors
/// 400 for another value than an object, and for one that is too large.
pub(super) fn put_extra(
    fields: &mut JsonFields,
    reader: ObjectReader<'_>,
) -> Result<(), IronicError> {
    let extra = reader.value(EXTRA);
    if !extra.is_null() && !extra.is_object() {
        return Err(IronicError::invalid("extra: must be an object"));
    }
    put(fields, EXTRA, extra)
}

fn sort_value(document: &NodeDocument, key: &str) -> SortValue {
    match key {
        "name" => SortValue::text(document.name.as_str()),
        "owner" => match document.owner {
            Some(owner) => SortValue::text(owner.to_string()),
            None => SortValue::Absent,
        },
        "public" => SortValue::Number(document.public.into()),
        "created_at" => SortValue::Number(document.meta.created_at.ms()),
        "updated_at" => SortValue::Number(document.meta.updated_at.ms()),
        "description" => {
            let fields = object_of(&document.fields);
            SortValue::text(fields["description"].as_str().unwrap_or_default())
        }
        _ => SortValue::Absent,
    }
}

#[cfg(test)]
mod tests {
    use control_state::Meta;

    use super::*;

    fn document() -> NodeDocument {
        let fields = [("description", "\"hall\"")];
        let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
        NodeDocument {
            id: Uuid::from_u128(7),
            meta: Meta::default(),
            kind: DocumentKind::Chassis,
            name: "n".to_owned(),
            owner: None,
            public: true,
            fields: JsonFields::from(fields),
        }
    }

    #[test]
    fn rows_are_sorted_by_their_fields() {
        for (key, expected) in [
            ("uuid", SortValue::Absent),
            ("name", SortValue::Text("n".to_owned())),
            ("owner", SortValue::Absent),
            ("public", SortValue::Number(1)),
            ("description", SortValue::Text("hall".to_owned())),
            ("created_at", SortValue::Number(0)),
        ] {
            assert_eq!(sort_value(&document(), key), expected, "{key}");
        }
    }

    #[test]
    fn unset_fields_can_be_patched() {
        let object = to_patch(&document(), &["description", "extra", "steps"]);
        assert_eq!(
            object,
            json!({"description": "hall", "extra": {}, "steps": null})
        );
    }

    #[test]
    fn fields_are_bounded() {
        let long = "x".repeat(DESCRIPTION_LEN_MAX + 1);
        let large = "x".repeat(JSON_BYTES_MAX);
        for (object, is_accepted) in [
            (json!({"description": "a", "extra": {"b": 1}}), true),
            (json!({}), true),
            (json!({"description": long}), false),
            (json!({"description": 7}), false),
            (json!({"extra": []}), false),
            (json!({"extra": {"a": large}}), false),
        ] {
            let reader = ObjectReader::new(&object);
            let mut fields = JsonFields::new();
            let put =
                put_description(&mut fields, reader).and_then(|()| put_extra(&mut fields, reader));
            assert_eq!(put.is_ok(), is_accepted);
        }
    }
}
