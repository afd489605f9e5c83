//! Kinds of objects that documents describe, and what becomes of an object by its document.

use anyhow::{Context as _, Result, bail, ensure};
use proto_public::json::{parse_strict, print};
use serde_json::{Map, Value, json};

/// A kind that can be applied and edited.
#[derive(Debug)]
pub(crate) struct Kind {
    /// As `kind` of a document says.
    pub(crate) name: &'static str,
    /// As commands say.
    pub(crate) short: &'static str,
    /// Message of a document: the object, or the request that creates it.
    document: &'static str,
    /// Message of the object.
    object: &'static str,
    /// The field of answers that has the object, and of the request that creates one, if documents
    /// are objects.
    field: &'static str,
    /// The field of a document that names the object.
    id: &'static str,
    /// The field of other requests that does.
    asked_by: &'static str,
    pub(crate) create: &'static str,
    pub(crate) get: &'static str,
    pub(crate) update: &'static str,
}

macro_rules! admins {
    ($name:literal $short:literal $document:literal $object:literal.$field:literal
     [$id:literal $asked_by:literal] $service:literal read by $get:literal) => {
        Kind {
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

static KINDS: &[Kind] = &[
    Kind {
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
pub(crate) fn of_document(value: &Value) -> Result<&'static Kind> {
    let name = value.get("kind").and_then(Value::as_str);
    let name = name.context("kind: is missing")?;
    let found = KINDS.iter().find(|it| it.name == name);
    found.with_context(|| {
        let known: Vec<&str> = KINDS.iter().map(|it| it.name).collect();
        format!(
            "kind: {name:?} cannot be applied; known are {}",
            known.join(", ")
        )
    })
}

/// The kind that a command names.
pub(crate) fn of_command(short: &str) -> Result<&'static Kind> {
    let found = KINDS.iter().find(|it| it.short == short);
    found.with_context(|| {
        let known: Vec<&str> = KINDS.iter().map(|it| it.short).collect();
        format!("{short:?} cannot be edited; known are {}", known.join(", "))
    })
}

/// What somebody wants of an object.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) id: String,
    /// As the contract prints them, without what is left at its default.
    fields: Map<String, Value>,
    /// Whether labels that it does not name are to go.
    is_whole: bool,
}

/// A field that is to become another one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub(crate) field: String,
    pub(crate) from: Value,
    pub(crate) to: Value,
}

/// What is to be done for a document.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The method and its request; none when all is as wanted.
    pub(crate) call: Option<(&'static str, Value)>,
    /// Of an object that is there.
    pub(crate) changes: Vec<Change>,
}

impl Kind {
    /// Reads a document; every field must be one of the contract.
    pub(crate) fn read(&self, mut value: Value) -> Result<Document> {
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
        Ok(Document {
            id: id.to_owned(),
            fields,
            is_whole: false,
        })
    }

    /// Puts plain labels where the message has them.
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

    /// What is to be done so that what is there (none: nothing) becomes what is wanted. What a
    /// document does not say stays as it is.
    pub(crate) fn plan(&self, there: Option<&Value>, wanted: &Document) -> Result<Plan> {
        let Some(there) = there else {
            let request = match self.document == self.object {
                true => json!({ self.field: &wanted.fields }),
                false => Value::Object(wanted.fields.clone()),
            };
            return Ok(Plan {
                call: Some((self.create, request)),
                changes: Vec::new(),
            });
        };
        let mut request = Map::new();
        let mut changes = Vec::new();
        for (field, to) in &wanted.fields {
            // Others are only for creating it.
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
            changes.push(Change {
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
            return Ok(Plan {
                call: None,
                changes,
            });
        }
        request.insert(self.asked_by.to_owned(), json!(wanted.id));
        request.insert("updateMeta".to_owned(), lock(there));
        Ok(Plan {
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

    /// What can be changed of an object, as a document.
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
        method.is_some_and(|it| it.input.get_field_by_json_name(field).is_some())
    }

    fn has(&self, message: &str, field: &str) -> bool {
        let message = proto_public::message(message);
        message.is_some_and(|it| it.get_field_by_json_name(field).is_some())
    }
}

impl Document {
    fn labels(&self) -> Map<String, Value> {
        let own = self.fields.get("labels").and_then(|it| it.get("labels"));
        match own.and_then(Value::as_object) {
            Some(labels) => labels.clone(),
            None => labels_of(&Value::Object(self.fields.clone())),
        }
    }

    /// Labels that are to become others, be added or go.
    fn label_changes(&self, there: &Value) -> Vec<Change> {
        let (there, wanted) = (labels_of(there), self.labels());
        let gone = there
            .keys()
            .filter(|key| self.is_whole && !wanted.contains_key(*key));
        let other = wanted
            .iter()
            .filter(|(key, to)| there.get(*key) != Some(*to));
        let keys = other.map(|(key, _)| key).chain(gone);
        keys.map(|key| Change {
            field: format!("{LABEL}{key}"),
            from: there.get(key).cloned().unwrap_or_default(),
            to: wanted.get(key).cloned().unwrap_or_default(),
        })
        .collect()
    }

    /// The document as all that is to be: nothing that was shown may be left out, as nobody could
    /// say whether it is to stay; labels that are left out go.
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

fn labels_of(object: &Value) -> Map<String, Value> {
    let labels = object.pointer("/meta/labels/labels");
    labels
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

const LABEL: &str = "label ";

fn label_patch(changes: &[Change]) -> Value {
    let (gone, set): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(|it| it.to.is_null());
    let key = |it: &Change| it.field.trim_start_matches(LABEL).to_owned();
    let set: Map<String, Value> = set.iter().map(|it| (key(it), it.to.clone())).collect();
    let gone: Vec<String> = gone.iter().map(|it| key(it)).collect();
    let mut patch = Map::new();
    if !set.is_empty() {
        patch.insert("update".to_owned(), json!({ "labels": set }));
    }
    if !gone.is_empty() {
        patch.insert("remove".to_owned(), json!(gone));
    }
    json!({ "patch": patch })
}

/// Nobody else may have changed it since it was read.
fn lock(there: &Value) -> Value {
    match there.pointer("/meta/updatedAt") {
        Some(at) => json!({
            "updatedAt": at, "lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_CLIENT",
        }),
        None => json!({ "lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER" }),
    }
}

/// Whether two values mean the same: lists of words have no order, and defaults are left out.
fn is_same(one: &Value, other: &Value) -> bool {
    let is_default = |it: &Value| match it {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_f64() == Some(0.0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    };
    let words = |it: &Value| -> Option<Vec<String>> {
        let all = it.as_array()?.iter();
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

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
