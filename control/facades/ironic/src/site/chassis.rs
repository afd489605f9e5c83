//! Chassis: documents of the site, which nodes name.

use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::query::{chassis_nodes, documents};
use control_state::{
    DeleteNodeDocument, DocumentKind, JsonFields, NodeDocument, SetNodeDocument, Tables,
};
use uuid::Uuid;

use super::documents::{change, find, put_description, put_extra, row, store, to_patch};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{ListQuery, asked_fields, check_parameters, page, selected};
use crate::patch::{JsonPatch, ObjectReader};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

const FIELDS: [&str; 7] = [
    "uuid",
    "description",
    "extra",
    "created_at",
    "updated_at",
    "links",
    "nodes",
];
/// The fields of lists.
const DEFAULTS: [&str; 2] = ["uuid", "description"];
const SORT_KEYS: [&str; 3] = ["description", "created_at", "updated_at"];
/// The fields that clients change.
const WRITTEN: [&str; 2] = ["description", "extra"];

/// `GET /chassis`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:chassis:get", &PolicyTarget::none())?;
        check_parameters(call, &[])?;
        let query = ListQuery::of(call, &SORT_KEYS, &FIELDS)?;
        of_site(call, query, "/chassis").await
    })
}

/// `GET /chassis/detail`.
pub(super) fn list_details<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:chassis:get", &PolicyTarget::none())?;
        check_parameters(call, &[])?;
        let query = ListQuery::of(call, &SORT_KEYS, &FIELDS)?.detailed()?;
        of_site(call, query, "/chassis/detail").await
    })
}

/// `GET /chassis/{chassis}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:chassis:get", &PolicyTarget::none())?;
        let fields = asked_fields(call, &FIELDS)?;
        let found = call.read(|tables| chassis(call, tables)).await?;
        let shown = view::chassis(&found, call.base);
        Ok(IronicAnswer::ok(selected(shown, fields.as_deref())))
    })
}

/// `POST /chassis`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:chassis:create", &PolicyTarget::none())?;
        let reader = ObjectReader::new(call.body);
        reader.check_known(&["uuid", "description", "extra"])?;
        let op = SetNodeDocument {
            id: reader.uuid("uuid")?.unwrap_or_else(Uuid::new_v4),
            kind: DocumentKind::Chassis,
            expected: 0,
            name: String::new(),
            owner: None,
            public: false,
            fields: content(reader)?,
        };
        let made = store(call, op).await?;
        let address = call.link(&format!("/chassis/{}", made.id));
        Ok(IronicAnswer::created(
            view::chassis(&made, call.base),
            address,
        ))
    })
}

/// `PATCH /chassis/{chassis}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:chassis:update", &PolicyTarget::none())?;
        let patch = JsonPatch::parse(call.body)?;
        patch.check_roots(&WRITTEN)?;
        let before = call.read(|tables| chassis(call, tables)).await?;
        let mut object = to_patch(&before, &WRITTEN);
        patch.apply(&mut object)?;
        let fields = content(ObjectReader::new(&object))?;
        let changed = store(call, change(&before, String::new(), fields)).await?;
        Ok(IronicAnswer::ok(view::chassis(&changed, call.base)))
    })
}

/// `DELETE /chassis/{chassis}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:chassis:delete", &PolicyTarget::none())?;
        let found = call.read(|tables| {
            let found = chassis(call, tables)?;
            match chassis_nodes(tables, found.id).next() {
                None => Ok(found),
                Some(_) => Err(IronicError::invalid(format!(
                    "Cannot complete the requested action because chassis {} contains nodes.",
                    found.id
                ))),
            }
        });
        let id = found.await?.id;
        call.propose(DeleteNodeDocument { id }).await?;
        Ok(IronicAnswer::no_content())
    })
}

async fn of_site(
    call: &IronicCall<'_>,
    query: ListQuery,
    path: &str,
) -> Result<IronicAnswer, IronicError> {
    let fields = query.shown(&DEFAULTS);
    let query = ListQuery { fields, ..query };
    let page = call.read(|tables| {
        let all = documents(tables, DocumentKind::Chassis);
        let rows =
            all.map(|document| row(document, &query, move || view::chassis(document, call.base)));
        page(call, &query, "chassis", path, rows.collect())
    });
    Ok(IronicAnswer::ok(page.await?))
}

/// The chassis of the path.
fn chassis(call: &IronicCall<'_>, tables: &Tables) -> Result<Arc<NodeDocument>, IronicError> {
    let ident = call.parameter("chassis");
    let found = find(tables, DocumentKind::Chassis, ident);
    found
        .cloned()
        .ok_or_else(|| IronicError::not_found("Chassis", ident))
}

fn content(reader: ObjectReader<'_>) -> Result<JsonFields, IronicError> {
    let mut fields = JsonFields::new();
    put_description(&mut fields, reader)?;
    put_extra(&mut fields, reader)?;
    Ok(fields)
}
