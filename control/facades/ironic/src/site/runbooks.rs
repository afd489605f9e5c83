//! Runbooks: documents of a project, of the site, or public. The verbs of nodes use their steps, as far
//! as metalmesh can do them.

use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::query::documents;
use control_state::{DeleteNodeDocument, DocumentKind, NodeDocument, SetNodeDocument, Tables};
use serde_json::{Value, json};
use uuid::Uuid;

use super::documents::{change, find, row, store, to_patch};
use super::runbook_content::{
    bounded, content, has_free_names, name, patched, reach, trait_name, traits,
};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{ListQuery, asked_fields, check_parameters, list_scope, page, selected};
use crate::patch::{JsonPatch, ObjectReader};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

const FIELDS: [&str; 12] = [
    "uuid",
    "name",
    "description",
    "extra",
    "steps",
    "traits",
    "public",
    "owner",
    "disable_ramdisk",
    "created_at",
    "updated_at",
    "links",
];
/// The fields of lists.
const DEFAULTS: [&str; 2] = ["uuid", "name"];
const SORT_KEYS: [&str; 5] = ["name", "owner", "public", "created_at", "updated_at"];
/// The stored fields that clients change.
const WRITTEN: [&str; 4] = ["description", "extra", "steps", "disable_ramdisk"];

/// The fields of a new runbook; the last one is as new as free names, and the first never changes.
static CREATED: [&str; 8] = [
    "uuid",
    "name",
    "extra",
    "steps",
    "public",
    "owner",
    "disable_ramdisk",
    "description",
];

/// `GET /runbooks`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let project = list_scope(call, "runbook")?;
        check_parameters(call, &["project"])?;
        let query = ListQuery::of(call, &SORT_KEYS, &FIELDS)?;
        let fields = query.shown(&DEFAULTS);
        let query = ListQuery { fields, ..query };
        let page = call.read(|tables| {
            let all = documents(tables, DocumentKind::Runbook);
            let is_shown = |document: &&Arc<NodeDocument>| {
                project.is_none() || document.public || document.owner == project
            };
            let rows = all.filter(is_shown).map(|document| {
                let make = move || view::runbook(document, call.version, call.base);
                row(document, &query, make)
            });
            page(call, &query, "runbooks", "/runbooks", rows.collect())
        });
        Ok(IronicAnswer::ok(page.await?))
    })
}

/// `GET /runbooks/{runbook}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| seen(call, tables)).await?;
        let fields = asked_fields(call, &FIELDS)?;
        let shown = selected(shown(call, &found), fields.as_deref());
        Ok(IronicAnswer::ok(shown))
    })
}

/// `POST /runbooks`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:runbook:create", &PolicyTarget::none())?;
        let reader = ObjectReader::new(call.body);
        let is_free = has_free_names(call.version);
        reader.check_known(match is_free {
            true => &CREATED[..],
            false => &CREATED[..CREATED.len() - 1],
        })?;
        let reach = reach(reader, call.caller.project())?;
        let op = SetNodeDocument {
            id: reader.uuid("uuid")?.unwrap_or_else(Uuid::new_v4),
            kind: DocumentKind::Runbook,
            expected: 0,
            name: name(reader, is_free)?,
            owner: reach.owner,
            public: reach.public,
            fields: content(reader, &Value::Null)?,
        };
        let made = store(call, op).await?;
        let address = call.link(&format!("/runbooks/{}", made.id));
        Ok(IronicAnswer::created(shown(call, &made), address))
    })
}

/// `PATCH /runbooks/{runbook}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let patch = JsonPatch::parse(call.body)?;
        let allowed = match has_free_names(call.version) {
            true => &CREATED[1..],
            false => &CREATED[1..CREATED.len() - 1],
        };
        patch.check_roots(allowed)?;
        let before = call.read(|tables| seen(call, tables)).await?;
        for rule in rules(&patch) {
            check_change(call, rule, &before)?;
        }
        let mut object = to_patch(&before, &WRITTEN);
        object["name"] = Value::from(before.name.as_str());
        object["public"] = Value::from(before.public);
        object["owner"] = Value::from(before.owner.map(|owner| owner.to_string()));
        let object = patched(&patch, object)?;
        let reader = ObjectReader::new(&object);
        let kept = to_patch(&before, &["traits"]);
        let op = SetNodeDocument {
            owner: reader.project("owner")?,
            public: reader.flag("public")?.unwrap_or(false),
            // Names of newer microversions stay as they are for older clients.
            ..change(
                &before,
                name(reader, true)?,
                content(reader, &kept["traits"])?,
            )
        };
        let changed = store(call, op).await?;
        Ok(IronicAnswer::ok(shown(call, &changed)))
    })
}

/// `DELETE /runbooks/{runbook}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| seen(call, tables)).await?;
        check_change(call, "baremetal:runbook:delete", &found)?;
        call.propose(DeleteNodeDocument { id: found.id }).await?;
        Ok(IronicAnswer::no_content())
    })
}

/// `GET /runbooks/{runbook}/traits`.
pub(super) fn list_traits<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| seen(call, tables)).await?;
        Ok(IronicAnswer::ok(json!({ "traits": traits_of(&found) })))
    })
}

/// `PUT /runbooks/{runbook}/traits`.
pub(super) fn set_traits<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let reader = ObjectReader::new(call.body);
        reader.check_known(&["traits"])?;
        let wanted = traits(reader.value("traits"))?;
        with_traits(call, |_| wanted).await
    })
}

/// `PUT /runbooks/{runbook}/traits/{trait}`.
pub(super) fn add_trait<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let added = trait_name(call.parameter("trait"))?;
        with_traits(call, |mut traits| {
            traits.push(added);
            traits
        })
        .await
    })
}

/// `DELETE /runbooks/{runbook}/traits`.
pub(super) fn remove_traits<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move { with_traits(call, |_| Vec::new()).await })
}

/// `DELETE /runbooks/{runbook}/traits/{trait}`.
pub(super) fn remove_trait<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let removed = call.parameter("trait");
        with_traits(call, |mut traits| {
            traits.retain(|known| known != removed);
            traits
        })
        .await
    })
}

async fn with_traits(
    call: &IronicCall<'_>,
    changed: impl FnOnce(Vec<String>) -> Vec<String>,
) -> Result<IronicAnswer, IronicError> {
    let before = call.read(|tables| seen(call, tables)).await?;
    check_change(call, "baremetal:runbook:update", &before)?;
    let traits = bounded(changed(traits_of(&before)))?;
    let mut fields = before.fields.clone();
    fields.insert("traits".to_owned(), json!(traits).to_string());
    store(call, change(&before, before.name.clone(), fields)).await?;
    Ok(IronicAnswer::no_content())
}

fn traits_of(runbook: &NodeDocument) -> Vec<String> {
    let stored = to_patch(runbook, &["traits"]);
    let list = stored["traits"].as_array();
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The rules of a patch: owner and public have their own, and all other fields one.
fn rules(patch: &JsonPatch) -> Vec<&'static str> {
    let mut rules: Vec<&'static str> = patch
        .roots()
        .into_iter()
        .map(|root| match root {
            "owner" => "baremetal:runbook:update:owner",
            "public" => "baremetal:runbook:update:public",
            _ => "baremetal:runbook:update",
        })
        .collect();
    if rules.is_empty() {
        rules.push("baremetal:runbook:update");
    }
    rules
}

fn permitted(call: &IronicCall<'_>, rule: &str, runbook: &NodeDocument) -> Result<(), IronicError> {
    let owner = runbook.owner.map(|owner| owner.to_string());
    call.require(rule, &PolicyTarget::runbook(owner.as_deref()))
}

/// Refuses a change that the rule does not permit. A public runbook is the site's: whoever changed it would
/// change what is done to nodes of others.
fn check_change(
    call: &IronicCall<'_>,
    rule: &str,
    runbook: &NodeDocument,
) -> Result<(), IronicError> {
    permitted(call, rule, runbook)?;
    match call.caller.reaches(runbook.owner) {
        true => Ok(()),
        false => Err(IronicError::forbidden(rule)),
    }
}

/// The runbook of the path, if the caller sees it: a public one, or one of its own that the policy
/// shows.
fn seen(call: &IronicCall<'_>, tables: &Tables) -> Result<Arc<NodeDocument>, IronicError> {
    let ident = call.parameter("runbook");
    let found = find(tables, DocumentKind::Runbook, ident);
    let shown = found.filter(|runbook| {
        let is_own = call.caller.reaches(runbook.owner);
        runbook.public || (is_own && permitted(call, "baremetal:runbook:get", runbook).is_ok())
    });
    shown
        .cloned()
        .ok_or_else(|| IronicError::not_found("Runbook", ident))
}

fn shown(call: &IronicCall<'_>, runbook: &NodeDocument) -> Value {
    view::runbook(runbook, call.version, call.base)
}
