//! The parts of Ironic that metalmesh does not have: empty lists for readers, and refusals with the
//! reason for callers that the policy lets write.

use control_oslo::PolicyTarget;
use control_state::{Machine, NodeRecord};
use serde_json::json;

use crate::access::find_node;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::list_scope;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

/// The driver of refusals.
const DRIVER: &str = "metalmesh";

/// `GET /shards`: the numbers of nodes by shard.
pub(super) fn shards<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:shards:get", &PolicyTarget::none())?;
        let shards = call.read(|tables| {
            let machines = tables.all::<Machine>();
            let shards = machines.map(|machine| {
                let record = tables.get::<NodeRecord>(&machine.id);
                record.map_or("", |record| record.content.shard.as_str())
            });
            Ok(view::shards(shards))
        });
        Ok(IronicAnswer::ok(json!({ "shards": shards.await? })))
    })
}

/// `GET /inspection_rules`.
pub(super) fn list_inspection_rules<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:inspection_rule:get", &PolicyTarget::none())?;
        Ok(IronicAnswer::ok(json!({ "inspection_rules": [] })))
    })
}

/// `GET /inspection_rules/{rule}`.
pub(super) fn show_inspection_rule<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:inspection_rule:get", &PolicyTarget::none())?;
        Err(IronicError::not_found(
            "Inspection rule",
            call.parameter("rule"),
        ))
    })
}

/// `POST /inspection_rules`.
pub(super) fn create_inspection_rule<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:inspection_rule:create", &PolicyTarget::none())?;
        Err(IronicError::unsupported(DRIVER, "inspection rules"))
    })
}

/// `PATCH /inspection_rules/{rule}`.
pub(super) fn update_inspection_rule<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:inspection_rule:update", &PolicyTarget::none())?;
        Err(IronicError::not_found(
            "Inspection rule",
            call.parameter("rule"),
        ))
    })
}

/// `DELETE /inspection_rules/{rule}`.
pub(super) fn delete_inspection_rule<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:inspection_rule:delete", &PolicyTarget::none())?;
        Err(IronicError::not_found(
            "Inspection rule",
            call.parameter("rule"),
        ))
    })
}

/// `DELETE /inspection_rules`: all of them, of which there are none.
pub(super) fn delete_inspection_rules<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:inspection_rule:delete", &PolicyTarget::none())?;
        Ok(IronicAnswer::no_content())
    })
}

/// `GET /volume`.
pub(super) fn volume<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        list_scope(call, "volume")?;
        let links = |path: &str| view::links(&call.link(path));
        Ok(IronicAnswer::ok(json!({
            "links": links("/volume/"),
            "connectors": links("/volume/connectors"),
            "targets": links("/volume/targets"),
        })))
    })
}

/// `GET /volume/connectors`.
pub(super) fn list_connectors<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        list_scope(call, "volume")?;
        Ok(IronicAnswer::ok(json!({ "connectors": [] })))
    })
}

/// `GET /volume/targets`.
pub(super) fn list_targets<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        list_scope(call, "volume")?;
        Ok(IronicAnswer::ok(json!({ "targets": [] })))
    })
}

/// Every verb of `/volume/connectors/{volume}`.
pub(super) fn connector<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    let ident = call.parameter("volume");
    Box::pin(async move { Err(IronicError::not_found("Volume connector", ident)) })
}

/// Every verb of `/volume/targets/{volume}`.
pub(super) fn target<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    let ident = call.parameter("volume");
    Box::pin(async move { Err(IronicError::not_found("Volume target", ident)) })
}

/// `POST /volume/connectors` and `POST /volume/targets`: refused as the rule of the node says, and then
/// because machines have no volumes of the network.
pub(super) fn create_volume<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let ident = call.body["node_uuid"].as_str().unwrap_or_default();
        let permitted = call.read(|tables| {
            let node = find_node(tables, ident);
            let target = node.as_ref().map(|node| node.target()).unwrap_or_default();
            call.require("baremetal:volume:create", &target)
        });
        permitted.await?;
        Err(IronicError::unsupported(DRIVER, "storage"))
    })
}

/// `POST /events`: there is no network service of another site whose events would matter.
pub(super) fn events<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.require("baremetal:events:post", &PolicyTarget::none())?;
        if !call.body["events"].is_array() {
            return Err(IronicError::invalid("events: must be a list of events"));
        }
        Ok(IronicAnswer::no_content())
    })
}
