//! The machines whose sessions a change of an address or a network concerns.

use std::collections::BTreeSet;

use proto_types::{NetworkId, SwitchId};

use crate::desired::placement::own_children;
use crate::machine::entity::{Machine, Segment};
use crate::network::entity::{Ip, Network, NetworkType};
use crate::tables::{Change, Record, Tables};

/// The addresses before and after a change. None if their owner stays, or the change is of
/// something else.
pub(super) fn moved_addresses(change: &Change) -> impl Iterator<Item = &Ip> {
    let is_same = match (&change.before, &change.record) {
        (Some(Record::Ip(was)), Some(Record::Ip(is))) => {
            (was.project, was.ip, &was.network) == (is.project, is.ip, &is.network)
        }
        _ => false,
    };
    let records = [&change.before, &change.record].into_iter().flatten();
    records
        .filter(move |_| !is_same)
        .filter_map(|record| match record {
            Record::Ip(ip) => Some(ip.as_ref()),
            _ => None,
        })
}

/// `true` if a network changed in a field that filters depend on.
pub(super) fn changes_filters(change: &Change) -> bool {
    match (&change.before, &change.record) {
        (Some(Record::Network(was)), Some(Record::Network(is))) => bearing(was) != bearing(is),
        _ => false,
    }
}

fn bearing(network: &Network) -> impl PartialEq + use<> {
    let parent: Option<NetworkId> = network.parent.clone();
    let is_underlay = network.kind == NetworkType::Underlay;
    (
        parent,
        is_underlay,
        network.additional_announcable_cidrs.clone(),
    )
}

/// Switches of the machines whose import filter has the address as one of its own entries. An
/// address inside of a machine's own prefixes has none.
pub(super) fn announcers(tables: &Tables, ip: &Ip) -> BTreeSet<SwitchId> {
    let machines = tables.index().project_machines.get(&ip.project);
    let machines = machines.into_iter().flatten();
    let machines = machines.filter_map(|id| tables.get::<Machine>(id));
    let concerned = machines.filter(|machine| {
        let allocation = machine.allocation.as_ref();
        machine.segment == Segment::Tenant
            && allocation.is_some_and(|allocation| {
                let mut prefixes = own_children(allocation).flat_map(|child| &child.prefixes);
                !prefixes.any(|prefix| prefix.contains(&ip.ip))
            })
    });
    let links = concerned.flat_map(|machine| &machine.links);
    links.map(|link| link.switch.clone()).collect()
}
