//! Keeps the neighbours and forwarding entries of other switches' router MAC addresses.
//!
//! A packet to a host behind another switch goes by a neighbour on the bridge of the L3 VNI, and by
//! the forwarding entry of the neighbour's MAC address on the tunnel. zebra 8.4.4 loses both, and
//! packets with them:
//!
//! - It has two neighbours for a switch, one for IPv4 routes and one for IPv6 routes, and counts
//!   them as one: it removes the entry with the last route of either version.
//! - It loses both while routes need them, at times when a route's best path changes
//!   (docs/reference/frr.md).
//!
//! Leaves and firewalls both run zebra, and both need this.
//!
//! Without a neighbour it is the routes that tell which switch is meant, and what was known of it
//! before that tells its address. Entries of tunnels stay when a neighbour that was put back goes:
//! nothing is sent by them.
//!
//! Invariants:
//! - Nothing that zebra has is changed: only what is missing is added (`Macs::missing`), and only
//!   neighbours with the agent's own mark are removed (`leftover`).
//! - A switch gets no address that was not seen for it (`Macs::guess`).

mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::future::ready;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourState};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::{
    Handle, MulticastGroup, RouteMessageBuilder, new_connection, new_multicast_connection,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use self::ways::{Entry, Macs, OURS, Way, leftover, tunnels, ways};

/// Time that zebra gets to replace an entry that it has removed.
const SETTLE: Duration = Duration::from_millis(10);
/// Longest time between two looks: the kernel drops events that nobody reads in time.
const IDLE: Duration = Duration::from_secs(5);

/// How the devices of an L3 VNI are named: each prefix, and the VNI as a decimal number.
#[derive(Clone, Copy, Debug)]
pub struct DeviceNames {
    /// Prefix of the bridge, whose neighbours are the other switches.
    pub bridge: &'static str,
    /// Prefix of the tunnel.
    pub tunnel: &'static str,
}

/// A look that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
struct LookError {
    action: String,
    source: rtnetlink::Error,
}

/// The bridges and tunnels of L3 VNIs, which the reader of events needs, and the word that one lost
/// a neighbour or an entry.
#[derive(Debug, Default)]
struct Watched {
    devices: Mutex<BTreeSet<u32>>,
    lost: Notify,
}

/// Starts the tasks that put entries back, within some milliseconds.
///
/// One of them reads events and does nothing else: they are as many as machines have MAC addresses,
/// and would fill the memory while the other one lists entries.
///
/// # Errors
/// When a socket cannot be opened.
pub fn keep(names: DeviceNames, tasks: &mut JoinSet<()>) -> io::Result<()> {
    let (events, _handle, mut messages) = new_multicast_connection(&[MulticastGroup::Neigh])?;
    tasks.spawn(events);
    // A socket of its own: the kernel refuses a second listing on one while the first goes on.
    let (requests, handle, _) = new_connection()?;
    tasks.spawn(requests);
    let watched = Arc::new(Watched::default());
    let reader = Arc::clone(&watched);
    tasks.spawn(async move {
        while let Some((message, _)) = messages.next().await {
            let device = losing(&message.payload);
            if device.is_some_and(|device| reader.devices.lock().contains(&device)) {
                reader.lost.notify_one();
            }
        }
    });
    tasks.spawn(async move {
        let mut known = Macs::default();
        loop {
            if let Err(error) = look(names, &handle, &watched, &mut known).await {
                let error = &error as &dyn Error;
                warn!(error, "router MAC addresses are not kept");
            }
            timeout(IDLE, watched.lost.notified()).await.ok();
            sleep(SETTLE).await;
        }
    });
    Ok(())
}

/// The device that an event removed a neighbour or an entry of.
fn losing(payload: &NetlinkPayload<RouteNetlinkMessage>) -> Option<u32> {
    match payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelNeighbour(message)) => {
            Some(message.header.ifindex)
        }
        _ => None,
    }
}

/// Adds what is missing. The devices are known before anything is listed, so that an entry that
/// goes meanwhile is noticed.
async fn look(
    names: DeviceNames,
    handle: &Handle,
    watched: &Watched,
    known: &mut Macs,
) -> Result<(), LookError> {
    let links = collect("list links", handle.link().get().execute()).await?;
    let tunnels = tunnels(names, &links);
    let ends: BTreeSet<u32> = tunnels.values().copied().collect();
    *watched.devices.lock() = ends.iter().chain(tunnels.keys()).copied().collect();
    if tunnels.is_empty() {
        *known = Macs::default();
        return Ok(());
    }
    // Those of others are dropped as they are read: there are as many as machines have addresses.
    let neighbours = handle.neighbours().get().execute();
    let neighbours = neighbours.try_filter(|of| ready(tunnels.contains_key(&of.header.ifindex)));
    let neighbours = collect("list neighbours", neighbours).await?;
    let mut macs = Macs::read(&neighbours);
    known.learn(&macs, &tunnels);
    let ways = used(handle, &tunnels).await?;
    for way in ways.iter().filter(|way| !macs.has(way)).collect::<Vec<_>>() {
        match known.guess(way) {
            Some(mac) => {
                if is_done(put_back(handle, way, mac).await) {
                    macs.insert(*way, mac.to_vec());
                }
            }
            None => warn!(end = %way.1, "a switch with routes has no router MAC address"),
        }
    }
    let entries = handle.neighbours().get();
    let entries = entries.set_address_family(AddressFamily::Bridge).execute();
    let entries = entries.try_filter(|of| ready(ends.contains(&of.header.ifindex)));
    let entries = collect("list forwarding entries", entries).await?;
    for entry in macs.missing(&tunnels, &entries) {
        is_done(add(handle, &entry).await);
    }
    for neighbour in leftover(&neighbours, &ways) {
        let removed = handle.neighbours().del(neighbour.clone()).execute().await;
        is_done(removed.map_err(|e| failed("remove a neighbour without routes", e)));
    }
    Ok(())
}

/// Tells of a change that failed. The others go on: they are of other tenants.
fn is_done(change: Result<(), LookError>) -> bool {
    if let Err(error) = &change {
        warn!(
            error = error as &dyn Error,
            "a way to another switch is not kept"
        );
    }
    change.is_ok()
}

/// The ways that routes take.
async fn used(handle: &Handle, tunnels: &BTreeMap<u32, u32>) -> Result<BTreeSet<Way>, LookError> {
    let v4 = RouteMessageBuilder::<Ipv4Addr>::new().build();
    let v6 = RouteMessageBuilder::<Ipv6Addr>::new().build();
    let mut used = BTreeSet::new();
    for of_family in [v4, v6] {
        let routes = handle.route().get(of_family).execute();
        // Only the ways are kept: routes are as many as machines have addresses.
        let found = routes.map_ok(|route| ways(&route, tunnels));
        used.extend(collect("list routes", found).await?.into_iter().flatten());
    }
    Ok(used)
}

/// Adds the neighbour of a way, as zebra has it.
async fn put_back(handle: &Handle, way: &Way, mac: &[u8]) -> Result<(), LookError> {
    let (bridge, end) = *way;
    let mut add = handle.neighbours().add(bridge, end);
    let mark = NeighbourAttribute::Protocol(OURS);
    add.message_mut().attributes.push(mark);
    let add = add
        .link_layer_address(mac)
        .state(NeighbourState::Noarp)
        .flags(NeighbourFlags::ExtLearned);
    let added = add.replace().execute().await;
    added.map_err(|e| failed(format!("add the neighbour {end}"), e))?;
    warn!(%end, "put the neighbour of another switch's routes back");
    Ok(())
}

/// Adds an entry in the tunnel and in the bridge, as zebra has it.
async fn add(handle: &Handle, entry: &Entry) -> Result<(), LookError> {
    let add = handle.neighbours().add_bridge(entry.tunnel, &entry.mac);
    let add = add
        .destination(entry.remote)
        .state(NeighbourState::Reachable)
        .flags(NeighbourFlags::Own | NeighbourFlags::Controller | NeighbourFlags::ExtLearned);
    let added = add.replace().execute().await;
    added.map_err(|e| failed(format!("add {entry:?}"), e))?;
    warn!(remote = %entry.remote, "put the entry of a router MAC address back");
    Ok(())
}

async fn collect<T>(
    action: &str,
    stream: impl Stream<Item = Result<T, rtnetlink::Error>>,
) -> Result<Vec<T>, LookError> {
    stream.try_collect().await.map_err(|e| failed(action, e))
}

fn failed(action: impl Into<String>, source: rtnetlink::Error) -> LookError {
    LookError {
        action: action.into(),
        source,
    }
}
