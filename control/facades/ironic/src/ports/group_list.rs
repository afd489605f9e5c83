//! Lists of port groups, and single ones.

use control_state::{NodePortGroup, Tables};
use serde_json::Value;

use super::node_scope::NodeScope;
use super::port_draft::parse_mac;
use super::port_list::names;
use super::port_lookup::group_for;
use crate::access::SeenNode;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{
    ListQuery, ListRow, SortValue, asked_fields, check_parameters, check_versions, page, selected,
};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{PORTGROUP_FIELDS, has_portgroup_field, portgroup, stored};

/// The parameters of the list beside those of every list.
const FILTERS: [&str; 4] = ["address", "conductor_groups", "node", "shard"];
/// The fields that port groups can be sorted by.
const SORT_KEYS: [&str; 4] = ["address", "created_at", "name", "node_uuid"];
/// The fields of a row of a list.
const SUMMARY: [&str; 3] = ["uuid", "address", "name"];

/// A list of port groups that a path stands for.
struct GroupListing<'a> {
    /// The path below `/v1`.
    path: String,
    /// `true` if the rows have all fields.
    is_detailed: bool,
    /// The node that the path names. `None` means all nodes.
    node: Option<&'a str>,
}

/// `GET /portgroups`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, None, false)
}

/// `GET /portgroups/detail`.
pub(super) fn detail<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, None, true)
}

/// `GET /nodes/{node}/portgroups`.
pub(super) fn list_of_node<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, Some(call.parameter("node")), false)
}

/// `GET /nodes/{node}/portgroups/detail`.
pub(super) fn detail_of_node<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, Some(call.parameter("node")), true)
}

/// `GET /portgroups/{portgroup}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let shown = call.read(|tables| {
            let found = group_for(call, tables, "baremetal:portgroup:get")?;
            check_parameters(call, &[])?;
            check_versions(call, has_portgroup_field)?;
            let fields = asked_fields(call, &PORTGROUP_FIELDS)?;
            let group = portgroup(&found.node, &found.group, call.version, call.base);
            Ok(selected(group, fields.as_deref()))
        });
        Ok(IronicAnswer::ok(shown.await?))
    })
}

fn listed<'a>(
    call: &'a IronicCall<'a>,
    node: Option<&'a str>,
    is_detailed: bool,
) -> HandlerFuture<'a> {
    let above = node.map_or_else(String::new, |node| format!("/nodes/{node}"));
    let below = if is_detailed { "/detail" } else { "" };
    let listing = GroupListing {
        path: format!("{above}/portgroups{below}"),
        is_detailed,
        node,
    };
    Box::pin(async move {
        let shown = call.read(|tables| list_of(call, tables, &listing)).await?;
        Ok(IronicAnswer::ok(shown))
    })
}

fn list_of(
    call: &IronicCall<'_>,
    tables: &Tables,
    listing: &GroupListing<'_>,
) -> Result<Value, IronicError> {
    check_parameters(call, &FILTERS)?;
    check_versions(call, has_portgroup_field)?;
    let mut query = ListQuery::of(call, &SORT_KEYS, &PORTGROUP_FIELDS)?;
    if listing.is_detailed {
        query = query.detailed()?;
    }
    check_filters(call, listing)?;
    let node = listing.node.or_else(|| call.asked("node"));
    let scope = node.map_or(NodeScope::All, NodeScope::Node);
    let address = call.asked("address").map(parse_mac).transpose()?;
    let (shards, conductors) = (
        names(call.asked("shard")),
        names(call.asked("conductor_groups")),
    );
    let mut nodes = scope.nodes(call, tables, "portgroup")?;
    nodes.retain(|node| {
        let content = stored(node);
        let is_among = |names: &[&str], name: &str| names.is_empty() || names.contains(&name);
        is_among(&shards, &content.shard) && is_among(&conductors, &content.conductor_group)
    });
    let shown = query.shown(&SUMMARY);
    let fields = shown.as_deref();
    let all = nodes
        .iter()
        .flat_map(|node| stored(node).groups.iter().map(move |group| (node, group)));
    let fitting = all.filter(|(_, group)| address.is_none() || group.address == address);
    let rows = fitting.map(|(node, group)| ListRow {
        key: group.id.to_string(),
        sort: sort_value(node, group, &query.sort_key),
        make: Box::new(move || {
            let shown = portgroup(node, group, call.version, call.base);
            selected(shown, fields)
        }),
    });
    page(call, &query, "portgroups", &listing.path, rows.collect())
}

/// Refuses filters that exclude each other, as in Ironic.
fn check_filters(call: &IronicCall<'_>, listing: &GroupListing<'_>) -> Result<(), IronicError> {
    let asked = FILTERS.iter().filter(|name| call.asked(name).is_some());
    if asked.count() + usize::from(listing.node.is_some()) <= 1 {
        return Ok(());
    }
    let text = "Filtering by node, address, or shard simultaneously is not supported.";
    Err(IronicError::invalid(text))
}

fn sort_value(node: &SeenNode, group: &NodePortGroup, key: &str) -> SortValue {
    match key {
        "address" => {
            let address = group.address.map(|mac| mac.to_string());
            SortValue::text(address.unwrap_or_default())
        }
        "created_at" => SortValue::Number(group.created_at.ms()),
        "name" => SortValue::text(&group.name),
        "node_uuid" => SortValue::text(node.id().to_string()),
        _ => SortValue::Absent,
    }
}
