//! Lists of ports, and single ones.

use control_state::Tables;
use proto_types::MacAddr;
use serde_json::Value;
use uuid::Uuid;

use super::node_scope::NodeScope;
use super::port_draft::parse_mac;
use super::port_lookup::{port_for, seen_group};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::{
    ListQuery, ListRow, SortValue, asked_fields, check_parameters, check_versions, page, selected,
};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{NodeCard, PORT_FIELDS, cards, has_port_field, port, stored};

/// The parameters of the list beside those of every list.
const FILTERS: [&str; 7] = [
    "address",
    "conductor_groups",
    "description_contains",
    "node",
    "node_uuid",
    "portgroup",
    "shard",
];
/// The fields that ports can be sorted by.
const SORT_KEYS: [&str; 5] = [
    "address",
    "created_at",
    "name",
    "node_uuid",
    "portgroup_uuid",
];
/// The fields of a row of a list.
const SUMMARY: [&str; 2] = ["uuid", "address"];

/// A list of ports that a path stands for.
struct PortListing<'a> {
    /// The path below `/v1`.
    path: String,
    /// `true` if the rows have all fields.
    is_detailed: bool,
    /// The nodes that the path names.
    scope: NodeScope<'a>,
}

impl<'a> PortListing<'a> {
    fn of(path: &str, scope: NodeScope<'a>) -> Self {
        Self {
            path: path.to_owned(),
            is_detailed: false,
            scope,
        }
    }

    fn of_node(call: &IronicCall<'a>) -> Self {
        let node = call.parameter("node");
        Self::of(&format!("/nodes/{node}/ports"), NodeScope::Node(node))
    }

    fn of_group(call: &IronicCall<'a>) -> Self {
        let group = call.parameter("portgroup");
        let path = format!("/portgroups/{group}/ports");
        Self::of(&path, NodeScope::Group(group))
    }

    fn detailed(self) -> Self {
        Self {
            path: format!("{}/detail", self.path),
            is_detailed: true,
            ..self
        }
    }
}

/// The filters of a list.
struct PortListFilter<'a> {
    address: Option<MacAddr>,
    group: Option<Uuid>,
    /// Names of shards; empty means any.
    shards: Vec<&'a str>,
    /// Names of groups of conductors; empty means any.
    conductor_groups: Vec<&'a str>,
    description: &'a str,
}

/// `GET /ports`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, PortListing::of("/ports", NodeScope::All))
}

/// `GET /ports/detail`.
pub(super) fn detail<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, PortListing::of("/ports", NodeScope::All).detailed())
}

/// `GET /nodes/{node}/ports`.
pub(super) fn list_of_node<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, PortListing::of_node(call))
}

/// `GET /nodes/{node}/ports/detail`.
pub(super) fn detail_of_node<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, PortListing::of_node(call).detailed())
}

/// `GET /portgroups/{portgroup}/ports`.
pub(super) fn list_of_group<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, PortListing::of_group(call))
}

/// `GET /portgroups/{portgroup}/ports/detail`.
pub(super) fn detail_of_group<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    listed(call, PortListing::of_group(call).detailed())
}

/// `GET /ports/{port}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let shown = call.read(|tables| {
            let found = port_for(call, tables, "baremetal:port:get")?;
            check_parameters(call, &[])?;
            check_versions(call, has_port_field)?;
            let fields = asked_fields(call, &PORT_FIELDS)?;
            let port = port(found.card(), call.version, call.base);
            Ok(selected(port, fields.as_deref()))
        });
        Ok(IronicAnswer::ok(shown.await?))
    })
}

fn listed<'a>(call: &'a IronicCall<'a>, listing: PortListing<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let shown = call.read(|tables| list_of(call, tables, &listing)).await?;
        Ok(IronicAnswer::ok(shown))
    })
}

fn list_of(
    call: &IronicCall<'_>,
    tables: &Tables,
    listing: &PortListing<'_>,
) -> Result<Value, IronicError> {
    check_parameters(call, &FILTERS)?;
    check_versions(call, has_port_field)?;
    let mut query = ListQuery::of(call, &SORT_KEYS, &PORT_FIELDS)?;
    if listing.is_detailed {
        query = query.detailed()?;
    }
    let address = call.asked("address").map(parse_mac).transpose()?;
    let scope = scope(call, listing.scope, address)?;
    let filter = PortListFilter {
        address,
        group: match scope {
            NodeScope::Group(ident) => Some(seen_group(call, tables, ident)?.group.id),
            _ => None,
        },
        shards: names(call.asked("shard")),
        conductor_groups: names(call.asked("conductor_groups")),
        description: call.asked("description_contains").unwrap_or_default(),
    };
    let nodes = scope.nodes(call, tables, "port")?;
    let shown = query.shown(&SUMMARY);
    let fields = shown.as_deref();
    let all = nodes.iter().flat_map(cards);
    let rows = all.filter(|card| filter.fits(*card)).map(|card| ListRow {
        key: card.id().to_string(),
        sort: sort_value(card, &query.sort_key),
        make: Box::new(move || selected(port(card, call.version, call.base), fields)),
    });
    page(call, &query, "ports", &listing.path, rows.collect())
}

/// The nodes that the path and the query name together.
fn scope<'a>(
    call: &IronicCall<'a>,
    of_path: NodeScope<'a>,
    address: Option<MacAddr>,
) -> Result<NodeScope<'a>, IronicError> {
    let node = call.asked("node_uuid").or_else(|| call.asked("node"));
    let named = [
        (of_path != NodeScope::All).then_some(of_path),
        node.map(NodeScope::Node),
        call.asked("portgroup").map(NodeScope::Group),
    ];
    let mut named = named.into_iter().flatten();
    let first = named.next();
    if named.next().is_some() || (first.is_some() && call.asked("shard").is_some()) {
        let text = "Filtering by node, portgroup or shard simultaneously is not supported.";
        return Err(IronicError::invalid(text));
    }
    let card = address.map_or(NodeScope::All, NodeScope::Card);
    Ok(first.unwrap_or(card))
}

impl PortListFilter<'_> {
    fn fits(&self, card: NodeCard<'_>) -> bool {
        let content = stored(card.node);
        let described = card.described();
        let is_among = |names: &[&str], name: &str| names.is_empty() || names.contains(&name);
        let description = described.map_or("", |port| port.description.as_str());
        let group = described.and_then(|port| port.group);
        self.address.is_none_or(|address| address == card.mac)
            && (self.group.is_none() || self.group == group)
            && is_among(&self.shards, &content.shard)
            && is_among(&self.conductor_groups, &content.conductor_group)
            && description.contains(self.description)
    }
}

fn sort_value(card: NodeCard<'_>, key: &str) -> SortValue {
    let described = card.described();
    match key {
        "address" => SortValue::text(card.mac.to_string()),
        "created_at" => {
            let of_node = card.node.machine.meta.created_at;
            SortValue::Number(described.map_or(of_node, |port| port.created_at).ms())
        }
        "name" => SortValue::text(described.map_or("", |port| port.name.as_str())),
        "node_uuid" => SortValue::text(card.node.id().to_string()),
        "portgroup_uuid" => {
            let group = described.and_then(|port| port.group);
            group.map_or(SortValue::Absent, |group| {
                SortValue::text(group.to_string())
            })
        }
        _ => SortValue::Absent,
    }
}

/// The names of a list in a parameter.
pub(super) fn names(asked: Option<&str>) -> Vec<&str> {
    let names = asked.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}
