//! Lists of nodes, and single ones.

use control_oslo::PolicyTarget;
use control_state::query::node_children;
use control_state::{Machine, Tables};
use proto_types::{MachineId, ProjectId};
use serde_json::{Value, json};

use super::node_display::NodeDisplay;
use super::node_filter::{NODE_FILTERS, NodeFilter};
use super::node_order::{NODE_SORT_KEYS, sort_value};
use crate::access::{SeenNode, find_node, seen_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{
    ListQuery, ListRow, asked_fields, check_parameters, check_versions, is_of, list_scope, page,
    selected, visible_nodes,
};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{NODE_FIELDS, has_node_field, link};

/// A list of nodes that a path stands for.
struct NodeListing<'a> {
    /// The path below `/v1`.
    path: String,
    /// `true` if the rows have all fields.
    is_detailed: bool,
    /// The chassis that the path names. `None` means all nodes.
    chassis: Option<&'a str>,
}

/// `GET /nodes`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(
        call,
        NodeListing {
            path: "/nodes".to_owned(),
            is_detailed: false,
            chassis: None,
        },
    )
}

/// `GET /nodes/detail`.
pub(super) fn detail<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(
        call,
        NodeListing {
            path: "/nodes/detail".to_owned(),
            is_detailed: true,
            chassis: None,
        },
    )
}

/// `GET /chassis/{chassis}/nodes`.
pub(super) fn list_of_chassis<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    let chassis = call.parameter("chassis");
    listed(
        call,
        NodeListing {
            path: format!("/chassis/{chassis}/nodes"),
            is_detailed: false,
            chassis: Some(chassis),
        },
    )
}

/// `GET /chassis/{chassis}/nodes/detail`.
pub(super) fn detail_of_chassis<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    let chassis = call.parameter("chassis");
    listed(
        call,
        NodeListing {
            path: format!("/chassis/{chassis}/nodes/detail"),
            is_detailed: true,
            chassis: Some(chassis),
        },
    )
}

/// `GET /nodes/{node}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let shown = call.read(|tables| {
            let ident = call.parameter("node");
            let node = seen_node(tables, call.policy, call.caller, ident)?;
            check_parameters(call, &[])?;
            check_versions(call, has_node_field)?;
            let fields = asked_fields(call, &NODE_FIELDS)?;
            let node = NodeDisplay::new(call, tables).full(&node);
            Ok(selected(node, fields.as_deref()))
        });
        Ok(IronicAnswer::ok(shown.await?))
    })
}

/// `GET /nodes/{node}/children`.
pub(super) fn children<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let shown = call.read(|tables| {
            let ident = call.parameter("node");
            let parent = seen_node(tables, call.policy, call.caller, ident)?;
            let children = visible_children(call, tables, parent.id())?;
            let address = call.link(&format!("/nodes?parent_node={}", parent.id()));
            Ok(json!({ "children": children, "links": link(&address, "children") }))
        });
        Ok(IronicAnswer::ok(shown.await?))
    })
}

fn visible_children(
    call: &IronicCall<'_>,
    tables: &Tables,
    parent: MachineId,
) -> Result<Vec<String>, IronicError> {
    let scope = list_scope(call, "node")?;
    let children = node_children(tables, parent);
    let machines = children.filter_map(|id| tables.get::<Machine>(&id));
    let seen = machines.map(|machine| SeenNode::of(tables, machine));
    let is_shown = |node: &SeenNode| {
        let is_listed = scope.is_none_or(|project| is_of(node, project));
        let is_seen = call.caller.is_system() || node.is_seen_by(call.policy, call.caller);
        is_listed && is_seen
    };
    let shown = seen.filter(is_shown);
    Ok(shown.map(|node| node.id().to_string()).collect())
}

fn listed<'a>(call: &'a IronicCall<'a>, listing: NodeListing<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let shown = call.read(|tables| list_of(call, tables, &listing)).await?;
        Ok(IronicAnswer::ok(shown))
    })
}

fn list_of(
    call: &IronicCall<'_>,
    tables: &Tables,
    listing: &NodeListing<'_>,
) -> Result<Value, IronicError> {
    check_scope(call)?;
    check_parameters(call, &NODE_FILTERS)?;
    check_versions(call, has_node_field)?;
    let mut query = ListQuery::of(call, &NODE_SORT_KEYS, &NODE_FIELDS)?;
    if listing.is_detailed {
        query = query.detailed()?;
    }
    let find = |ident: &str| find_node(tables, ident).map(|node| node.id());
    let mut filter = NodeFilter::parse(call.query, find)?;
    if let Some(chassis) = listing.chassis {
        let unknown = |_| IronicError::not_found("Chassis", chassis);
        filter.chassis = Some(chassis.parse().map_err(unknown)?);
    }
    let display = NodeDisplay::new(call, tables);
    let mut nodes = visible_nodes(call, tables, "node")?;
    let conductor = filter.conductor.as_deref();
    if conductor.is_some_and(|name| !display.is_conductor(name)) {
        nodes.clear();
    }
    nodes.retain(|node| filter.fits(node, display.now()));
    let (display, query) = (&display, &query);
    let rows = nodes.into_iter().map(|node| ListRow {
        key: node.id().to_string(),
        sort: sort_value(&node, &query.sort_key, display.now()),
        make: Box::new(move || match (query.detail, &query.fields) {
            (false, None) => display.summary(&node),
            _ => display.full(&node),
        }),
    });
    page(call, query, "nodes", &listing.path, rows.collect())
}

/// Refuses the list of another project's nodes to callers that may list their own alone.
fn check_scope(call: &IronicCall<'_>) -> Result<(), IronicError> {
    let own = list_scope(call, "node")?;
    let (Some(own), Some(asked)) = (own, call.asked("project")) else {
        return Ok(());
    };
    if asked.parse::<ProjectId>() == Ok(own) {
        return Ok(());
    }
    call.require("baremetal:node:list_all", &PolicyTarget::none())
}
