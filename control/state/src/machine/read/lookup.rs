//! Machines by project, partition, switch port and NIC.

use std::sync::Arc;

use proto_types::{MacAddr, PartitionId, ProjectId, SwitchId};

use crate::machine::entity::{Machine, VpnMember};
use crate::tables::Tables;

/// Machines allocated to a project.
pub fn project_machines(
    tables: &Tables,
    project: ProjectId,
) -> impl Iterator<Item = &Arc<Machine>> {
    let ids = tables
        .index()
        .project_machines
        .get(&project)
        .into_iter()
        .flatten();
    ids.filter_map(|id| tables.get::<Machine>(id))
}

/// Number of open orders to BMCs by partition. Partitions without any are left out.
pub fn open_orders(tables: &Tables) -> impl Iterator<Item = (&PartitionId, usize)> {
    let open = tables.index().open_orders.iter();
    open.map(|(partition, orders)| (partition, orders.len()))
}

/// Machines in a partition.
pub fn partition_machines<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
) -> impl Iterator<Item = &'a Arc<Machine>> {
    let ids = tables
        .index()
        .partition_machines
        .get(partition)
        .into_iter()
        .flatten();
    ids.filter_map(|id| tables.get::<Machine>(id))
}

/// Machines with a cable to a switch, each with the port, in the order of ports.
pub fn switch_machines<'a>(
    tables: &'a Tables,
    switch: &'a SwitchId,
) -> impl Iterator<Item = (&'a str, &'a Arc<Machine>)> {
    // The empty name comes before every port of the switch.
    let cables = tables
        .index()
        .port_machine
        .range((switch.clone(), String::new())..);
    cables
        .take_while(move |((at, _), _)| at == switch)
        .filter_map(|((_, port), id)| Some((port.as_str(), tables.get::<Machine>(id)?)))
}

/// The machine at a port of a switch.
pub fn port_machine<'a>(
    tables: &'a Tables,
    switch: &SwitchId,
    port: &str,
) -> Option<&'a Arc<Machine>> {
    let at = (switch.clone(), port.to_owned());
    let id = tables.index().port_machine.get(&at)?;
    tables.get::<Machine>(id)
}

/// The machine of a partition that has a NIC with this address, or asked for a boot from it.
pub fn machine_of_mac<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    mac: MacAddr,
) -> Option<&'a Arc<Machine>> {
    partition_machines(tables, partition).find(|machine| {
        let mut nics = machine.hardware.nics.iter();
        nics.any(|nic| nic.mac == mac) || machine.boot_macs.contains(&mac)
    })
}

/// Members of the VPN whose allocation has ended or is being reclaimed: their nodes and keys must
/// be removed.
pub fn vpn_leaving(tables: &Tables) -> impl Iterator<Item = &Arc<VpnMember>> {
    tables.all::<VpnMember>().filter(|member| {
        let machine = tables.get::<Machine>(&member.machine);
        let holder = machine.and_then(|machine| machine.allocation.as_ref());
        // By the allocation: the machine may be another project's by now.
        holder.is_none_or(|holder| holder.id != member.allocation)
            || machine.is_some_and(|machine| machine.is_leaving())
    })
}
