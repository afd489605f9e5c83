//! Control nodes, which are conductors to clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use control_oslo::PolicyTarget;
use control_state::{ControlNode, Tables};
use serde_json::Value;

use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{
    ListQuery, ListRow, SortValue, asked_fields, check_parameters, page, selected,
};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

const FIELDS: [&str; 7] = [
    "hostname",
    "conductor_group",
    "alive",
    "drivers",
    "links",
    "created_at",
    "updated_at",
];
/// The fields of lists.
const DEFAULTS: [&str; 3] = ["hostname", "conductor_group", "alive"];
const SORT_KEYS: [&str; 4] = ["hostname", "conductor_group", "created_at", "updated_at"];
/// Longest silence of a living control node, milliseconds.
const SILENCE_MS_MAX: u64 = 60_000;

/// `GET /conductors`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:conductor:get", &PolicyTarget::none())?;
        check_parameters(call, &[])?;
        let query = ListQuery::of(call, &SORT_KEYS, &FIELDS)?;
        let fields = query.shown(&DEFAULTS);
        let query = ListQuery { fields, ..query };
        let alive = alive(call).await;
        let page = call.read(|tables| {
            let rows = members(tables).map(|node| ListRow {
                key: view::conductor_name(node.id),
                sort: match query.sort_key.as_str() {
                    "created_at" => SortValue::Number(node.invited_at.ms()),
                    "hostname" => SortValue::Number(node.id),
                    _ => SortValue::Absent,
                },
                make: {
                    let is_alive = alive.contains(&node.id);
                    Box::new(move || shown(call, node, is_alive))
                },
            });
            page(call, &query, "conductors", "/conductors", rows.collect())
        });
        Ok(IronicAnswer::ok(page.await?))
    })
}

/// `GET /conductors/{conductor}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:conductor:get", &PolicyTarget::none())?;
        let fields = asked_fields(call, &FIELDS)?;
        let name = call.parameter("conductor");
        let alive = alive(call).await;
        let found = call.read(|tables| {
            let mut members = members(tables);
            let node = members.find(|node| view::conductor_name(node.id) == name);
            let node = node.ok_or_else(|| IronicError::not_found("Conductor", name))?;
            Ok(shown(call, node, alive.contains(&node.id)))
        });
        let shown = selected(found.await?, fields.as_deref());
        Ok(IronicAnswer::ok(shown))
    })
}

fn members(tables: &Tables) -> impl Iterator<Item = &Arc<ControlNode>> {
    let all = tables.all::<ControlNode>();
    all.filter(|node| node.joined_at.is_some() && node.removed_at.is_none())
}

fn shown(call: &IronicCall<'_>, node: &ControlNode, is_alive: bool) -> Value {
    view::conductor(node, call.base, is_alive, view::time(call.now()))
}

/// The control nodes that the leader hears.
async fn alive(call: &IronicCall<'_>) -> BTreeSet<u64> {
    let view = call.core.store.cluster_view().await;
    let heard = view.members.iter().filter(|member| {
        member.is_leader
            || member
                .heard_ms
                .is_some_and(|silence| silence < SILENCE_MS_MAX)
    });
    heard.map(|member| member.node).collect()
}
