//! Keeps the forwarding entries of other switches' router MAC addresses.
//!
//! A packet to a host behind another switch goes by a neighbour on the bridge of the L3 VNI, and by
//! the forwarding entry of the neighbour's MAC address on the tunnel. zebra 8.4.4 has two
//! neighbours for a switch, one for IPv4 routes and one for IPv6 routes, and counts them as one: it
//! removes the entry with the last route of either version, and the other version's packets are
//! lost.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::{Handle, MulticastGroup, new_connection, new_multicast_connection};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::names::{l3_vni_of, tunnel_name};
use super::view::{View, ip};
use super::{collect, links};
use crate::back_end::NosError;

/// Time that zebra gets to replace an entry that it has removed.
const SETTLE: Duration = Duration::from_millis(10);
/// Longest time between two looks: the kernel drops events that nobody reads in time.
const IDLE: Duration = Duration::from_secs(5);

/// The way to a router MAC address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    tunnel: u32,
    mac: Vec<u8>,
    remote: IpAddr,
}

/// The tunnels of L3 VNIs, which the reader of events needs, and the word that one lost an entry.
#[derive(Debug, Default)]
struct Watched {
    tunnels: Mutex<BTreeSet<u32>>,
    lost: Notify,
}

/// Starts the tasks that put entries back, within some milliseconds.
///
/// One of them reads events and does nothing else: they are as many as machines have MAC addresses,
/// and would fill the memory while the other one lists entries.
///
/// # Errors
/// When a socket cannot be opened.
pub(super) fn keep(tasks: &mut JoinSet<()>) -> io::Result<()> {
    let (events, _handle, mut messages) = new_multicast_connection(&[MulticastGroup::Neigh])?;
    tasks.spawn(events);
    // A socket of its own: the kernel refuses a second listing on one while the first goes on.
    let (requests, handle, _) = new_connection()?;
    tasks.spawn(requests);
    let watched = Arc::new(Watched::default());
    let reader = Arc::clone(&watched);
    tasks.spawn(async move {
        while let Some((message, _)) = messages.next().await {
            let tunnel = removed_tunnel(&message.payload);
            if tunnel.is_some_and(|tunnel| reader.tunnels.lock().contains(&tunnel)) {
                reader.lost.notify_one();
            }
        }
    });
    tasks.spawn(async move {
        loop {
            if let Err(error) = look(&handle, &watched.tunnels).await {
                warn!(%error, "router MAC addresses are not kept");
            }
            timeout(IDLE, watched.lost.notified()).await.ok();
            sleep(SETTLE).await;
        }
    });
    Ok(())
}

/// The tunnel that an event removed an entry of.
fn removed_tunnel(payload: &NetlinkPayload<RouteNetlinkMessage>) -> Option<u32> {
    match payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelNeighbour(message)) => {
            (message.header.family == AddressFamily::Bridge).then_some(message.header.ifindex)
        }
        _ => None,
    }
}

/// Adds the entries that are missing. The tunnels are known before entries are listed, so that one
/// that goes meanwhile is noticed.
async fn look(handle: &Handle, known: &Mutex<BTreeSet<u32>>) -> Result<(), NosError> {
    let view = View::new(&links(handle).await?, &[], None);
    let bridges = view.links.iter().filter_map(|link| {
        let tunnel = view.by_name(&tunnel_name(l3_vni_of(link)?))?;
        Some((link.index, tunnel.index))
    });
    let tunnels: BTreeMap<u32, u32> = bridges.collect();
    let ends: BTreeSet<u32> = tunnels.values().copied().collect();
    known.lock().clone_from(&ends);
    if tunnels.is_empty() {
        return Ok(());
    }
    // Those of others are dropped as they are read: there are as many as machines have addresses.
    let neighbours = handle.neighbours().get().execute();
    let neighbours = neighbours.try_filter(|of| ready(tunnels.contains_key(&of.header.ifindex)));
    let neighbours = collect("list neighbours", neighbours).await?;
    let entries = handle.neighbours().get();
    let entries = entries.set_address_family(AddressFamily::Bridge).execute();
    let entries = entries.try_filter(|of| ready(ends.contains(&of.header.ifindex)));
    let entries = collect("list forwarding entries", entries).await?;
    for entry in missing(&tunnels, &neighbours, &entries) {
        let add = handle.neighbours().add_bridge(entry.tunnel, &entry.mac);
        let add = add
            .destination(entry.remote)
            .state(NeighbourState::Reachable)
            // In the tunnel and in the bridge, as zebra has it.
            .flags(NeighbourFlags::Own | NeighbourFlags::Controller | NeighbourFlags::ExtLearned);
        let added = add.replace().execute().await;
        added.map_err(|e| super::failed(format!("add {entry:?}"), e))?;
        warn!(remote = %entry.remote, "put the entry of a router MAC address back");
    }
    Ok(())
}

/// The entries that neighbours need and the tunnels do not have.
fn missing(
    tunnels: &BTreeMap<u32, u32>,
    neighbours: &[NeighbourMessage],
    entries: &[NeighbourMessage],
) -> BTreeSet<Entry> {
    let known: BTreeSet<(u32, &[u8])> = entries
        .iter()
        .filter(|entry| destination(entry).is_some())
        .filter_map(|entry| Some((entry.header.ifindex, mac(entry)?)))
        .collect();
    let needed = neighbours.iter().filter_map(|neighbour| {
        let tunnel = *tunnels.get(&neighbour.header.ifindex)?;
        let is_zebras = neighbour.header.flags.contains(NeighbourFlags::ExtLearned);
        let mac = mac(neighbour)?;
        (is_zebras && !known.contains(&(tunnel, mac))).then_some(())?;
        Some(Entry {
            tunnel,
            mac: mac.to_vec(),
            // Of IPv6 routes it is "::ffff:" and the address of the tunnel's end.
            remote: destination(neighbour)?.to_canonical(),
        })
    });
    needed.collect()
}

fn mac(message: &NeighbourMessage) -> Option<&[u8]> {
    message.attributes.iter().find_map(|found| match found {
        NeighbourAttribute::LinkLayerAddress(mac) => Some(&mac[..]),
        _ => None,
    })
}

fn destination(message: &NeighbourMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|found| match found {
        NeighbourAttribute::Destination(address) => ip(address),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use rtnetlink::packet_route::neighbour::NeighbourAddress;

    use super::*;

    const BRIDGE: u32 = 7;
    const TUNNEL: u32 = 8;
    const MAC: [u8; 6] = [2, 0x4d, 10, 0, 0, 11];

    fn message(device: u32, mac: [u8; 6], remote: Option<&str>) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = device;
        message.header.flags = NeighbourFlags::ExtLearned;
        let mac = NeighbourAttribute::LinkLayerAddress(mac.to_vec());
        message.attributes.push(mac);
        let remote = remote.map(|text| match text.parse().unwrap() {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        });
        let remote = remote.map(NeighbourAttribute::Destination);
        message.attributes.extend(remote);
        message
    }

    #[test]
    fn a_neighbour_of_either_version_needs_the_entry() {
        let v4 = message(BRIDGE, MAC, Some("10.0.0.11"));
        let v6 = message(BRIDGE, MAC, Some("::ffff:10.0.0.11"));
        let other = message(9, MAC, Some("10.0.0.11"));
        let mut by_hand = v4.clone();
        by_hand.header.flags = NeighbourFlags::empty();
        let there = message(TUNNEL, MAC, Some("10.0.0.11"));
        let in_the_bridge_alone = message(TUNNEL, MAC, None);
        let entry = Entry {
            tunnel: TUNNEL,
            mac: MAC.to_vec(),
            remote: "10.0.0.11".parse().unwrap(),
        };
        let tunnels = [(BRIDGE, TUNNEL)].into();
        for (neighbours, entries, expected) in [
            (vec![v4.clone(), v6.clone()], vec![], Some(&entry)),
            (vec![v6.clone()], vec![in_the_bridge_alone], Some(&entry)),
            (vec![v4], vec![there.clone()], None),
            (vec![v6], vec![there], None),
            (vec![other, by_hand], vec![], None),
            (vec![], vec![], None),
        ] {
            let found = missing(&tunnels, &neighbours, &entries);
            assert_eq!(found.iter().next(), expected, "{neighbours:?} {entries:?}");
        }
    }
}
