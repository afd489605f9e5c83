//! Queries for machines: every given field must match exactly, and every wanted item of a list must be
//! present.

use std::sync::Arc;

use control_state::query::partition_machines;
use control_state::{Allocation, Hardware, Machine, Phase, Tables, VpnMember};
use proto_public::api::v2;
use proto_types::PartitionId;

use super::enums::{allocation_type, availability};
use super::machine::{shown_labels, shown_size};
use super::{has_labels, is, is_choice, is_opt};

/// The machines that match a query. A query with a partition reads only the index of that partition.
pub fn fitting<'a>(tables: &'a Tables, query: Option<&v2::MachineQuery>) -> Vec<&'a Arc<Machine>> {
    let named = query.and_then(|query| query.partition.as_ref());
    match named.map(|partition| partition.parse::<PartitionId>()) {
        None => {
            let all = tables.all::<Machine>();
            all.filter(|machine| matches(tables, machine, query))
                .collect()
        }
        Some(Ok(partition)) => {
            // The partition index has already applied this filter.
            let rest = query.map(|query| v2::MachineQuery {
                partition: None,
                ..query.clone()
            });
            let there = partition_machines(tables, &partition);
            there
                .filter(|machine| matches(tables, machine, rest.as_ref()))
                .collect()
        }
        // A malformed id matches no partition.
        Some(Err(_)) => Vec::new(),
    }
}

/// `true` if the query matches this machine.
pub fn matches(tables: &Tables, machine: &Machine, query: Option<&v2::MachineQuery>) -> bool {
    let Some(query) = query else { return true };
    let allocation = machine.allocation.as_ref();
    is_opt(query.uuid.as_ref(), Some(&machine.id))
        && query
            .name
            .as_ref()
            .is_none_or(|name| allocation.is_some_and(|allocation| allocation.name == *name))
        && is_opt(query.partition.as_ref(), machine.partition.as_ref())
        && is(query.size.as_ref(), &shown_size(machine.size.as_ref()))
        && is(query.rack.as_ref(), &machine.rack)
        && is(query.room.as_ref(), &machine.room)
        && (query.labels.is_none() || has_labels(&shown_labels(machine), query.labels.as_ref()))
        && asked(query.allocation.as_ref())
            .is_none_or(|q| allocation.is_some_and(|allocation| in_allocation(tables, allocation, &q)))
        && sub(query.network.as_ref(), |q| allocation.is_some_and(|allocation| in_networks(allocation, q)))
        && sub(query.nic.as_ref(), |q| in_nics(&machine.hardware, q))
        && sub(query.disk.as_ref(), |q| in_disks(&machine.hardware, q))
        && sub(query.bmc.as_ref(), |q| in_bmc(machine, q))
        && sub(query.fru.as_ref(), |q| in_fru(machine, q))
        && sub(query.hardware.as_ref(), |q| in_hardware(&machine.hardware, q))
        && is_choice(query.state, availability(machine.condition.state))
        && query.waiting.is_none_or(|wanted| wanted == (machine.phase == Phase::Waiting))
        // Allocation is atomic here: there is no state between free and allocated.
        && query.preallocated.is_none_or(|wanted| !wanted)
        && query.not_allocated.is_none_or(|wanted| wanted == allocation.is_none())
}

/// An empty part of a query matches every machine, also one without that part.
fn sub<Q: Default + PartialEq>(query: Option<&Q>, fits: impl FnOnce(&Q) -> bool) -> bool {
    query.is_none_or(|query| *query == Q::default() || fits(query))
}

/// The allocation query if it filters. An unspecified type and an empty list of labels do not filter.
fn asked(query: Option<&v2::MachineAllocationQuery>) -> Option<v2::MachineAllocationQuery> {
    let mut query = query?.clone();
    query.allocation_type = query.allocation_type.filter(|kind| *kind != 0);
    query.labels = query.labels.filter(|wanted| !wanted.labels.is_empty());
    query.vpn = query.vpn.filter(|vpn| *vpn != v2::MachineVpn::default());
    Some(query).filter(|query| *query != v2::MachineAllocationQuery::default())
}

fn in_allocation(
    tables: &Tables,
    allocation: &Allocation,
    query: &v2::MachineAllocationQuery,
) -> bool {
    is(query.uuid.as_ref(), &allocation.id.to_string())
        && is(query.name.as_ref(), &allocation.name)
        && is(query.project.as_ref(), &allocation.project.to_string())
        && is(query.image.as_ref(), allocation.image.as_str())
        && is(
            query.filesystem_layout.as_ref(),
            allocation.layout.id.as_str(),
        )
        && is(query.hostname.as_ref(), &allocation.hostname)
        && is_choice(query.allocation_type, allocation_type(allocation.kind))
        && has_labels(&allocation.labels, query.labels.as_ref())
        && sub(query.vpn.as_ref(), |q| {
            let member = tables.get::<VpnMember>(&allocation.id);
            member.is_some_and(|member| in_vpn(member, q))
        })
}

/// `true` if the query matches this VPN member. Its key is not a filter.
fn in_vpn(member: &VpnMember, query: &v2::MachineVpn) -> bool {
    let address = &query.control_plane_address;
    (address.is_empty() || *address == member.access.address)
        && (!query.connected || member.connected)
        && all(&query.ips, |wanted| {
            member.ips.iter().any(|ip| ip.to_string() == *wanted)
        })
}

fn all<T>(wanted: &[T], has: impl Fn(&T) -> bool) -> bool {
    wanted.iter().all(has)
}

fn in_networks(allocation: &Allocation, query: &v2::MachineNetworkQuery) -> bool {
    let any = |fits: &dyn Fn(&control_state::AllocationNetwork) -> bool| {
        allocation.networks.iter().any(fits)
    };
    let texts =
        |nets: &[ipnet::IpNet], wanted: &String| nets.iter().any(|net| net.to_string() == *wanted);
    all(&query.networks, |id| {
        any(&|network| network.network.as_str() == id)
    }) && all(&query.prefixes, |wanted| {
        any(&|network| texts(&network.prefixes, wanted))
    }) && all(&query.destination_prefixes, |wanted| {
        any(&|network| texts(&network.destination_prefixes, wanted))
    }) && all(&query.ips, |wanted| {
        any(&|network| network.ips.iter().any(|ip| wanted.parse() == Ok(*ip)))
    }) && all(&query.vrfs, |wanted| {
        any(&|network| u64::from(network.vrf) == *wanted)
    }) && all(&query.asns, |wanted| {
        any(&|network| network.asn.0 == *wanted)
    })
}

fn in_nics(hardware: &Hardware, query: &v2::MachineNicQuery) -> bool {
    let nics = &hardware.nics;
    let neighbours = || nics.iter().flat_map(|nic| &nic.neighbours);
    all(&query.macs, |wanted| {
        nics.iter().any(|nic| wanted.parse() == Ok(nic.mac))
    }) && all(&query.names, |wanted| {
        nics.iter().any(|nic| nic.name == *wanted)
    }) && all(&query.neighbor_macs, |wanted| {
        neighbours().any(|one| one.chassis_id == *wanted)
    }) && all(&query.neighbor_names, |wanted| {
        neighbours().any(|one| one.port_id == *wanted)
    })
}

fn in_disks(hardware: &Hardware, query: &v2::MachineDiskQuery) -> bool {
    all(&query.names, |wanted| {
        hardware.disks.iter().any(|disk| disk.name == *wanted)
    }) && all(&query.sizes, |wanted| {
        hardware.disks.iter().any(|disk| disk.size == *wanted)
    })
}

fn in_bmc(machine: &Machine, query: &v2::MachineBmcQuery) -> bool {
    let Some(bmc) = &machine.bmc else {
        return false;
    };
    let host = bmc
        .address
        .rsplit_once(':')
        .map_or(bmc.address.as_str(), |(host, _)| host);
    let address = query.address.as_ref();
    address.is_none_or(|wanted| *wanted == bmc.address || wanted == host)
        && is(query.mac.as_ref(), &bmc.mac)
        && query
            .user
            .as_ref()
            .is_none_or(|user| is_user(machine, user))
        && is(query.interface.as_ref(), &bmc.interface)
}

/// `true` if agents of the mesh or of the published stack log in to the machine's BMC as this user.
fn is_user(machine: &Machine, user: &str) -> bool {
    let ours = machine.bmc.as_ref().map(|bmc| bmc.user.as_str());
    let published = machine.bmc_access.as_ref();
    let published = published.map(|access| access.user.as_str());
    !user.is_empty() && [ours, published].contains(&Some(user))
}

fn in_fru(machine: &Machine, query: &v2::MachineFruQuery) -> bool {
    let fru = &machine.fru;
    is(query.chassis_part_number.as_ref(), &fru.chassis_part_number)
        && is(query.chassis_part_serial.as_ref(), &fru.chassis_part_serial)
        && is(query.board_mfg.as_ref(), &fru.board_mfg)
        && is(query.board_serial.as_ref(), &fru.board_mfg_serial)
        && is(query.board_part_number.as_ref(), &fru.board_part_number)
        && is(
            query.product_manufacturer.as_ref(),
            &fru.product_manufacturer,
        )
        && is(query.product_part_number.as_ref(), &fru.product_part_number)
        && is(query.product_serial.as_ref(), &fru.product_serial)
}

fn in_hardware(hardware: &Hardware, query: &v2::MachineHardwareQuery) -> bool {
    let cores: u32 = hardware.cpus.iter().map(|cpu| cpu.cores).sum();
    query.memory.is_none_or(|wanted| wanted == hardware.memory)
        && query.cpu_cores.is_none_or(|wanted| wanted == cores)
}
