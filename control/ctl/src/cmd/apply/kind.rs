//! Kinds of objects that documents describe, and the plan for an object by its document.

use anyhow::{Context as _, Result, bail};
use proto_public::json::{parse_strict, print};
use serde_json::{Map, Value, json};

use super::document::{ObjectDocument, labels_of};
use super::plan::{ApplyPlan, FieldChange, is_same, label_patch, lock};

/// A kind that can be applied and edited.
#[derive(Debug)]
pub(crate) struct AppliedKind {
    /// Name in the field `kind` of a document.
    pub(crate) name: &'static str,
    /// Name on the command line.
    pub(crate) short: &'static str,
    /// Message type of a document: the object, or the request that creates it.
    document: &'static str,
    /// Message type of the object.
    object: &'static str,
    /// The field of answers that has the object. The create request has it too if documents are
    /// objects.
    field: &'static str,
    /// The field of a document that has the object's id.
    id: &'static str,
    /// The field of get and update requests that has the object's id.
    asked_by: &'static str,
    pub(crate) create: &'static str,
    pub(crate) get: &'static str,
    pub(crate) update: &'static str,
}

macro_rules! admins {
    ($name:literal $short:literal $document:literal $object:literal.$field:literal
     [$id:literal $asked_by:literal] $service:literal read by $get:literal) => {
        AppliedKind {
            name: $name,
            short: $short,
            document: concat!("metalstack.", $document),
            object: concat!("metalstack.api.v2.", $object),
            field: $field,
            id: $id,
            asked_by: $asked_by,
            create: concat!("/metalstack.admin.v2.", $service, "/Create"),
            get: concat!("/metalstack.", $get, "/Get"),
            update: concat!("/metalstack.admin.v2.", $service, "/Update"),
        }
    };
}

static KINDS: &[AppliedKind] = &[
    AppliedKind {
        update: "/metalstack.api.v2.TenantService/Update",
        ..admins!("Tenant" "tenant" "admin.v2.TenantServiceCreateRequest" "Tenant"."tenant"
            ["name" "login"] "TenantService" read by "api.v2.TenantService")
    },
    admins!("Partition" "partition" "api.v2.Partition" "Partition"."partition"
        ["id" "id"] "PartitionService" read by "api.v2.PartitionService"),
    admins!("Size" "size" "api.v2.Size" "Size"."size"
        ["id" "id"] "SizeService" read by "api.v2.SizeService"),
    admins!("SizeImageConstraint" "size-image-constraint"
        "admin.v2.SizeImageConstraintServiceCreateRequest"
        "SizeImageConstraint"."sizeImageConstraint"
        ["size" "size"] "SizeImageConstraintService" read by "admin.v2.SizeImageConstraintService"),
    admins!("Image" "image" "api.v2.Image" "Image"."image"
        ["id" "id"] "ImageService" read by "api.v2.ImageService"),
    admins!("FilesystemLayout" "filesystem-layout" "api.v2.FilesystemLayout"
        "FilesystemLayout"."filesystemLayout"
        ["id" "id"] "FilesystemService" read by "api.v2.FilesystemService"),
    admins!("Network" "network" "admin.v2.NetworkServiceCreateRequest" "Network"."network"
        ["id" "id"] "NetworkService" read by "admin.v2.NetworkService"),
];

/// The kind of a document.
pub(crate) fn of_document(value: &Value) -> Result<&'static AppliedKind> {
    let name = value.get("kind").and_then(Value::as_str);
    let name = name.context("kind: is missing")?;
    let found = KINDS.iter().find(|kind| kind.name == name);
    found.with_context(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        format!(
            "kind: {name:?} cannot be applied; the kinds are {}",
            known.join(", ")
        )
    })
}

/// The kind that a command names.
pub(crate) fn of_command(short: &str) -> Result<&'static AppliedKind> {
    let found = KINDS.iter().find(|kind| kind.short == short);
    found.with_context(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.short).collect();
        format!(
            "{short:?} cannot be edited; the kinds are {}",
            known.join(", ")
        )
    })
}

impl AppliedKind {
    /// Parses a document.
    ///
    /// # Errors
    /// A field is not in the contract, or the id is missing.
    pub(crate) fn read(&self, mut value: Value) -> Result<ObjectDocument> {
        let fields = value.as_object_mut().context("is no object with fields")?;
        fields.remove("kind");
        if let Some(labels) = fields.remove("labels") {
            self.set_labels(fields, labels);
        }
        let message = proto_public::message(self.document).context("unknown message")?;
        let parsed = parse_strict(&message, value.to_string().as_bytes())?;
        let fields: Map<String, Value> = serde_json::from_slice(&print(&parsed)?)?;
        let id = fields.get(self.id).and_then(Value::as_str);
        let id = id.with_context(|| {
            let (name, id) = (self.name, self.id);
            format!("{id}: is missing; without it the {name} could not be found again")
        })?;
        Ok(ObjectDocument {
            id: id.to_owned(),
            fields,
            is_whole: false,
        })
    }

    /// Puts the labels of a document, a plain map, where the message type has them.
    fn set_labels(&self, fields: &mut Map<String, Value>, labels: Value) {
        let is_message = labels.get("labels").is_some_and(Value::is_object);
        let labels = if is_message {
            labels
        } else {
            json!({ "labels": labels })
        };
        if self.has(self.document, "labels") {
            fields.insert("labels".to_owned(), labels);
        } else {
            let meta = fields.entry("meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("labels".to_owned(), labels);
            }
        }
    }

    /// The request that reads an object.
    pub(crate) fn ask(&self, id: &str) -> Value {
        json!({ self.asked_by: id })
    }

    /// The object of an answer.
    pub(crate) fn answered(&self, mut answer: Value) -> Result<Value> {
        let object = answer.get_mut(self.field).map(Value::take);
        object.with_context(|| format!("the server answered without a {}", self.name))
    }

    /// Plans the call that makes an object what the document says. `None` means the object does not
    /// exist yet. Fields that the document leaves out do not change.
    ///
    /// # Errors
    /// The document changes a field that no update can change.
    pub(crate) fn plan(&self, there: Option<&Value>, wanted: &ObjectDocument) -> Result<ApplyPlan> {
        let Some(there) = there else {
            let request = match self.document == self.object {
                true => json!({ self.field: &wanted.fields }),
                false => Value::Object(wanted.fields.clone()),
            };
            return Ok(ApplyPlan {
                call: Some((self.create, request)),
                changes: Vec::new(),
            });
        };
        let mut request = Map::new();
        let mut changes = Vec::new();
        for (field, to) in &wanted.fields {
            // The create request has fields that the object lacks; they do not count as changes.
            let is_plain = field != self.id && field != "meta" && field != "labels";
            if !is_plain || !self.has(self.object, field) {
                continue;
            }
            let from = there.get(field).cloned().unwrap_or_default();
            if is_same(&from, to) {
                continue;
            }
            self.may_change(&wanted.id, field, &from, to)?;
            request.insert(field.clone(), to.clone());
            changes.push(FieldChange {
                field: field.clone(),
                from,
                to: to.clone(),
            });
        }
        let labels = wanted.label_changes(there);
        if let Some(first) = labels.first() {
            self.may_change(&wanted.id, "labels", &first.from, &first.to)?;
            request.insert("labels".to_owned(), label_patch(&labels));
            changes.extend(labels);
        }
        if changes.is_empty() {
            return Ok(ApplyPlan {
                call: None,
                changes,
            });
        }
        request.insert(self.asked_by.to_owned(), json!(wanted.id));
        request.insert("updateMeta".to_owned(), lock(there));
        Ok(ApplyPlan {
            call: Some((self.update, Value::Object(request))),
            changes,
        })
    }

    fn may_change(&self, id: &str, field: &str, from: &Value, to: &Value) -> Result<()> {
        if self.has_update(field) {
            return Ok(());
        }
        bail!(
            "{} {id}: {field}: cannot be changed from {from} to {to}; take the field out of the \
             document, or delete the {0} and create it again",
            self.name
        )
    }

    /// The changeable fields of an object, as a document.
    pub(crate) fn editable(&self, id: &str, there: &Value) -> Map<String, Value> {
        let mut shown = Map::new();
        shown.insert("kind".to_owned(), json!(self.name));
        shown.insert(self.id.to_owned(), json!(id));
        let object = there.as_object().into_iter().flatten();
        let changeable = object.filter(|(field, _)| {
            let is_other = *field != self.id && self.has(self.document, field);
            is_other && self.has_update(field)
        });
        shown.extend(changeable.map(|(field, value)| (field.clone(), value.clone())));
        if self.has_update("labels") {
            shown.insert("labels".to_owned(), Value::Object(labels_of(there)));
        }
        shown
    }

    fn has_update(&self, field: &str) -> bool {
        let method = proto_public::method(self.update);
        method.is_some_and(|method| method.input.get_field_by_json_name(field).is_some())
    }

    fn has(&self, message: &str, field: &str) -> bool {
        let message = proto_public::message(message);
        message.is_some_and(|message| message.get_field_by_json_name(field).is_some())
    }
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
