//! Ports.

use std::sync::Arc;

use control_gate::refusal::of_state;
use control_state::query::{documents, project_documents};
use control_state::{
    DeleteNodeDocument, DocumentKind, Ip, IpKey, Network, NetworkType, NodeDocument,
    SetNodeDocument, Tables,
};
use http::StatusCode;
use proto_types::{IpNet, NetworkId, ProjectId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::collection::{NetworkCollection, page};
use super::networks::{answer, find};
use super::port_binding::binding;
use super::port_fields::{WantedAddress, WrittenPort};
use super::reach::{reaches_port, require_member};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{network_port, object_of, subnet_id, subnet_of_id};

static PORTS: NetworkCollection = NetworkCollection {
    name: "ports",
    filters: &[
        "id",
        "name",
        "network_id",
        "project_id",
        "tenant_id",
        "binding:host_id",
        "device_id",
        "device_owner",
        "mac_address",
        "status",
        "admin_state_up",
    ],
};

/// `GET /v2.0/ports`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let rows = call.read(|tables| {
            let kind = DocumentKind::NetworkPort;
            let show = |port: &Arc<NodeDocument>| shown(tables, port);
            let rows: Vec<Value> = match call.caller.project() {
                None => documents(tables, kind).map(show).collect(),
                own => project_documents(tables, own, kind).map(show).collect(),
            };
            Ok(rows)
        });
        let page = page(call, &PORTS, rows.await?)?;
        Ok(IronicAnswer::ok(page))
    })
}

/// `GET /v2.0/ports/{port}`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let found = call.read(|tables| {
            let port = port(call, tables)?;
            Ok(shown(tables, &port))
        });
        Ok(answer(call, "port", found.await?))
    })
}

/// `POST /v2.0/ports`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        require_member(call.caller)?;
        let written = WrittenPort::parse(call.body)?;
        let owner = owner(call, written.project)?;
        let network = written.network.as_ref().ok_or_else(|| {
            IronicError::invalid("network_id: is missing; see `metalmesh network ls`")
        })?;
        let wanted = written.addresses.as_deref().unwrap_or_default();
        let addresses = call.read(|tables| {
            let network = usable(tables, call, network.as_str())?;
            addresses(tables, network, owner, wanted)
        });
        let addresses = addresses.await?;
        let mut fields = written.texts.clone();
        let id = Value::from(network.as_str());
        fields.insert("network_id".to_owned(), id.to_string());
        if let Some(addresses) = addresses {
            fields.insert("fixed_ips".to_owned(), addresses.to_string());
        }
        let op = SetNodeDocument {
            id: Uuid::new_v4(),
            kind: DocumentKind::NetworkPort,
            expected: 0,
            name: String::new(),
            owner,
            public: false,
            fields,
        };
        let made = stored(call, op).await?;
        let address = format!("{}/v2.0/ports/{}", call.base, made.id);
        let shown = call.read(|tables| Ok(shown(tables, &made))).await?;
        Ok(IronicAnswer::created(json!({ "port": shown }), address))
    })
}

/// `PUT /v2.0/ports/{port}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let before = call.read(|tables| port(call, tables)).await?;
        require_member(call.caller)?;
        let written = WrittenPort::parse(call.body)?;
        let network = network_of(&before);
        let keeps_network = written
            .network
            .as_ref()
            .is_none_or(|id| id.as_str() == network);
        let keeps_owner = written.project.is_none_or(|id| before.owner == Some(id));
        if !keeps_network || !keeps_owner {
            let text = "network_id and project_id of a port do not change: make another one";
            return Err(IronicError::invalid(text));
        }
        let mut fields = before.fields.clone();
        fields.extend(written.texts);
        if let Some(wanted) = &written.addresses {
            let addresses = call.read(|tables| {
                let network = usable(tables, call, &network)?;
                addresses(tables, network, before.owner, wanted)
            });
            match addresses.await? {
                Some(addresses) => fields.insert("fixed_ips".to_owned(), addresses.to_string()),
                None => fields.remove("fixed_ips"),
            };
        }
        let op = SetNodeDocument {
            id: before.id,
            kind: before.kind,
            expected: before.meta.generation,
            name: String::new(),
            owner: before.owner,
            public: false,
            fields,
        };
        let changed = stored(call, op).await?;
        let shown = call.read(|tables| Ok(shown(tables, &changed))).await?;
        Ok(IronicAnswer::ok(json!({ "port": shown })))
    })
}

/// `DELETE /v2.0/ports/{port}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let before = call.read(|tables| port(call, tables)).await?;
        require_member(call.caller)?;
        call.propose(DeleteNodeDocument { id: before.id }).await?;
        Ok(IronicAnswer::no_content())
    })
}

async fn stored(
    call: &IronicCall<'_>,
    op: SetNodeDocument,
) -> Result<Arc<NodeDocument>, IronicError> {
    let reply = call.propose(op).await?;
    Ok(reply.node_document().map_err(of_state)?)
}

/// The port of the path, if the caller sees it.
fn port(call: &IronicCall<'_>, tables: &Tables) -> Result<Arc<NodeDocument>, IronicError> {
    let ident = call.parameter("port");
    let id = Uuid::parse_str(ident).ok();
    let found = id.and_then(|id| tables.get::<NodeDocument>(&id));
    let own = found
        .filter(|port| port.kind == DocumentKind::NetworkPort && reaches_port(call.caller, port));
    own.cloned()
        .ok_or_else(|| IronicError::not_found("Port", ident))
}

fn shown(tables: &Tables, port: &NodeDocument) -> Value {
    network_port(port, &binding(tables, port))
}

fn network_of(port: &NodeDocument) -> String {
    let fields = object_of(&port.fields);
    fields["network_id"].as_str().unwrap_or_default().to_owned()
}

/// The project of a new port: the caller's own, or for the site the one that the request names.
fn owner(
    call: &IronicCall<'_>,
    wanted: Option<ProjectId>,
) -> Result<Option<ProjectId>, IronicError> {
    match call.caller.project() {
        None => Ok(wanted),
        Some(own) if wanted.is_none_or(|wanted| wanted == own) => Ok(Some(own)),
        Some(_) => {
            let text = "project_id: a project makes ports of its own alone";
            Err(IronicError::new(StatusCode::FORBIDDEN, text))
        }
    }
}

/// A network that machines can be in, if the caller sees it.
fn usable<'t>(
    tables: &'t Tables,
    call: &IronicCall<'_>,
    id: &str,
) -> Result<&'t Network, IronicError> {
    let network = find(tables, call.caller, id);
    let network = network.ok_or_else(|| IronicError::not_found("Network", id))?;
    let kind = network.kind;
    if kind.is_super() || kind == NetworkType::Underlay {
        let text = format!(
            "network_id: network {id} is of type {}, which no machine is in; use a child network: \
             metalmesh network create",
            kind.as_str()
        );
        return Err(IronicError::invalid(text));
    }
    Ok(network)
}

/// The addresses to store, `[{"subnet_id": .., "ip_address": ..}]`. `None` means none: the machine
/// gets new ones when it is installed.
///
/// # Errors
/// 400 for an address that the project does not have.
fn addresses(
    tables: &Tables,
    network: &Network,
    owner: Option<ProjectId>,
    wanted: &[WantedAddress],
) -> Result<Option<Value>, IronicError> {
    let mut stored = Vec::new();
    for address in wanted {
        if let Some(subnet) = &address.subnet {
            let is_own = |(id, prefix): &(NetworkId, IpNet)| {
                *id == network.id && network.prefixes.contains(prefix)
            };
            if !subnet_of_id(subnet).as_ref().is_some_and(is_own) {
                return Err(IronicError::not_found("Subnet", subnet));
            }
        }
        let Some(ip) = address.ip else { continue };
        let key = IpKey {
            namespace: network.namespace,
            ip,
        };
        let is_free = tables.get::<Ip>(&key).is_some_and(|found| {
            found.network == network.id && Some(found.project) == owner && found.machine.is_none()
        });
        let prefix = network.prefix_of(ip).filter(|_| is_free);
        let Some(prefix) = prefix else {
            let text = format!(
                "fixed_ips: {ip} is no free address of the project in this network; acquire it \
                 first: metalmesh ip create --network {}",
                network.id
            );
            return Err(IronicError::invalid(text));
        };
        stored.push(json!({
            "subnet_id": subnet_id(&network.id, prefix),
            "ip_address": ip.to_string(),
        }));
    }
    Ok((!stored.is_empty()).then_some(Value::Array(stored)))
}
