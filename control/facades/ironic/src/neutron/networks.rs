//! Networks and subnets.

use std::net::IpAddr;
use std::sync::Arc;

use control_state::{Network, Partition, SEGMENT_MTU_DEFAULT, Tables};
use proto_types::{IpNet, NetworkId};
use serde_json::{Value, json};

use super::collection::{NetworkCollection, all, page, selected};
use super::reach::reaches_network;
use crate::access::FacadeCaller;
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view;

static NETWORKS: NetworkCollection = NetworkCollection {
    name: "networks",
    filters: &[
        "id",
        "name",
        "description",
        "project_id",
        "tenant_id",
        "shared",
        "router:external",
        "status",
        "admin_state_up",
    ],
};

static SUBNETS: NetworkCollection = NetworkCollection {
    name: "subnets",
    filters: &[
        "id",
        "name",
        "network_id",
        "project_id",
        "tenant_id",
        "cidr",
        "ip_version",
        "enable_dhcp",
    ],
};

/// `GET /v2.0`.
pub(super) fn version<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let links = view::links(&format!("{}/v2.0/", call.base));
        let version = json!({ "id": "v2.0", "status": "CURRENT", "links": links });
        Ok(IronicAnswer::ok(json!({ "version": version })))
    })
}

/// `GET /v2.0/networks`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let rows = call.read(|tables| {
            let seen = seen(tables, call.caller);
            Ok(seen.map(|network| shown(tables, network)).collect())
        });
        let page = page(call, &NETWORKS, rows.await?)?;
        Ok(IronicAnswer::ok(page))
    })
}

/// `GET /v2.0/networks/{network}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let id = call.parameter("network");
        let found = call.read(|tables| {
            let network = find(tables, call.caller, id);
            let network = network.ok_or_else(|| IronicError::not_found("Network", id))?;
            Ok(shown(tables, network))
        });
        Ok(answer(call, "network", found.await?))
    })
}

/// `GET /v2.0/subnets`.
pub(super) fn list_subnets<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let rows = call.read(|tables| {
            let mut rows = Vec::new();
            for network in seen(tables, call.caller) {
                let subnets = network.prefixes.iter();
                rows.extend(subnets.map(|prefix| shown_subnet(tables, network, prefix)));
            }
            Ok(rows)
        });
        let page = page(call, &SUBNETS, rows.await?)?;
        Ok(IronicAnswer::ok(page))
    })
}

/// `GET /v2.0/subnets/{subnet}`.
pub(super) fn show_subnet<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let id = call.parameter("subnet");
        let unknown = || IronicError::not_found("Subnet", id);
        let (network, prefix) = view::subnet_of_id(id).ok_or_else(unknown)?;
        let found = call.read(|tables| {
            let network = find(tables, call.caller, network.as_str());
            let network = network.filter(|network| network.prefixes.contains(&prefix));
            let network = network.ok_or_else(unknown)?;
            Ok(shown_subnet(tables, network, &prefix))
        });
        Ok(answer(call, "subnet", found.await?))
    })
}

/// The network of this id, if the caller sees it.
pub(super) fn find<'t>(
    tables: &'t Tables,
    caller: &FacadeCaller,
    id: &str,
) -> Option<&'t Arc<Network>> {
    let id: NetworkId = id.parse().ok()?;
    let network = tables.get::<Network>(&id);
    network.filter(|network| reaches_network(caller, network))
}

/// One object with the fields that the query names.
pub(super) fn answer(call: &IronicCall<'_>, name: &str, object: Value) -> IronicAnswer {
    let fields: Vec<&str> = all(call.query, "fields").collect();
    let object = selected(object, &fields);
    IronicAnswer::ok(Value::Object(
        [(name.to_owned(), object)].into_iter().collect(),
    ))
}

fn seen<'t>(
    tables: &'t Tables,
    caller: &'t FacadeCaller,
) -> impl Iterator<Item = &'t Arc<Network>> {
    let all = tables.all::<Network>();
    all.filter(move |network| reaches_network(caller, network))
}

fn partition<'t>(tables: &'t Tables, network: &Network) -> Option<&'t Partition> {
    let partition = tables.get::<Partition>(network.partition.as_ref()?)?;
    Some(partition)
}

fn shown(tables: &Tables, network: &Network) -> Value {
    let mtu = partition(tables, network).map_or(SEGMENT_MTU_DEFAULT, Partition::segment_mtu);
    view::network(network, mtu)
}

fn shown_subnet(tables: &Tables, network: &Network, prefix: &IpNet) -> Value {
    let dns: &[IpAddr] = match partition(tables, network) {
        Some(partition) => &partition.dns_servers,
        None => &[],
    };
    view::subnet(network, prefix, dns)
}
