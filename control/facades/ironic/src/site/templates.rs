//! Deploy templates: documents of the site. Deployments of metalmesh have no steps, so that a template
//! changes none.

use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::query::documents;
use control_state::{
    DeleteNodeDocument, DocumentKind, JsonFields, NodeDocument, SetNodeDocument, Tables,
};
use proto_types::TraitName;
use serde_json::Value;
use uuid::Uuid;

use super::documents::{change, find, put, put_description, put_extra, row, store, to_patch};
use super::steps::template_steps;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{ListQuery, asked_fields, check_parameters, page, selected};
use crate::patch::{JsonPatch, ObjectReader};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

const FIELDS: [&str; 7] = [
    "uuid",
    "name",
    "extra",
    "steps",
    "created_at",
    "updated_at",
    "links",
];
/// The fields of lists.
const DEFAULTS: [&str; 2] = ["uuid", "name"];
const SORT_KEYS: [&str; 3] = ["name", "created_at", "updated_at"];
/// The fields that clients change, beside the name.
const WRITTEN: [&str; 3] = ["description", "extra", "steps"];

/// `GET /deploy_templates`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:deploy_template:get", &PolicyTarget::none())?;
        check_parameters(call, &[])?;
        let query = ListQuery::of(call, &SORT_KEYS, &FIELDS)?;
        let fields = query.shown(&DEFAULTS);
        let query = ListQuery { fields, ..query };
        let page = call.read(|tables| {
            let all = documents(tables, DocumentKind::DeployTemplate);
            let rows = all.map(|document| {
                row(document, &query, move || {
                    view::deploy_template(document, call.base)
                })
            });
            let path = "/deploy_templates";
            page(call, &query, "deploy_templates", path, rows.collect())
        });
        Ok(IronicAnswer::ok(page.await?))
    })
}

/// `GET /deploy_templates/{template}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:deploy_template:get", &PolicyTarget::none())?;
        let fields = asked_fields(call, &FIELDS)?;
        let found = call.read(|tables| template(call, tables)).await?;
        let shown = view::deploy_template(&found, call.base);
        Ok(IronicAnswer::ok(selected(shown, fields.as_deref())))
    })
}

/// `POST /deploy_templates`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:deploy_template:create", &PolicyTarget::none())?;
        let reader = ObjectReader::new(call.body);
        reader.check_known(&["uuid", "name", "description", "extra", "steps"])?;
        let op = SetNodeDocument {
            id: reader.uuid("uuid")?.unwrap_or_else(Uuid::new_v4),
            kind: DocumentKind::DeployTemplate,
            expected: 0,
            name: name(reader)?,
            owner: None,
            public: false,
            fields: content(reader)?,
        };
        let made = store(call, op).await?;
        let address = call.link(&format!("/deploy_templates/{}", made.id));
        let shown = view::deploy_template(&made, call.base);
        Ok(IronicAnswer::created(shown, address))
    })
}

/// `PATCH /deploy_templates/{template}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:deploy_template:update", &PolicyTarget::none())?;
        let patch = JsonPatch::parse(call.body)?;
        patch.check_roots(&["name", "description", "extra", "steps"])?;
        let before = call.read(|tables| template(call, tables)).await?;
        let mut object = to_patch(&before, &WRITTEN);
        object["name"] = Value::from(before.name.as_str());
        patch.apply(&mut object)?;
        let reader = ObjectReader::new(&object);
        let op = change(&before, name(reader)?, content(reader)?);
        let changed = store(call, op).await?;
        Ok(IronicAnswer::ok(view::deploy_template(&changed, call.base)))
    })
}

/// `DELETE /deploy_templates/{template}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:deploy_template:delete", &PolicyTarget::none())?;
        let id = call.read(|tables| template(call, tables)).await?.id;
        call.propose(DeleteNodeDocument { id }).await?;
        Ok(IronicAnswer::no_content())
    })
}

/// The template of the path.
fn template(call: &IronicCall<'_>, tables: &Tables) -> Result<Arc<NodeDocument>, IronicError> {
    let ident = call.parameter("template");
    let found = find(tables, DocumentKind::DeployTemplate, ident);
    let unknown = || IronicError::not_found("Deploy template", ident);
    found.cloned().ok_or_else(unknown)
}

/// The name, which is that of a trait: nodes that have it would be deployed by the template.
fn name(reader: ObjectReader<'_>) -> Result<String, IronicError> {
    let name = reader.text("name")?.unwrap_or_default();
    let parsed = name.parse::<TraitName>();
    let parsed = parsed.map_err(|error| IronicError::invalid(format!("name: {error}")))?;
    Ok(parsed.as_str().to_owned())
}

fn content(reader: ObjectReader<'_>) -> Result<JsonFields, IronicError> {
    let mut fields = JsonFields::new();
    put_description(&mut fields, reader)?;
    put_extra(&mut fields, reader)?;
    put(
        &mut fields,
        "steps",
        &template_steps(reader.value("steps"))?,
    )?;
    Ok(fields)
}
