//! Questions to the tables that readers ask: derived, never stored.

use std::sync::Arc;

use proto_errors::Error;
use proto_types::{MacAddr, MachineId, PartitionId, ProjectId, SizeId, SwitchId};

use crate::apply;
use crate::catalog::entity::Layout;
use crate::entities::{Machine, VpnMember};
use crate::life::cables;
use crate::tables::Tables;

pub use crate::catalog::read::layout;
pub use crate::catalog::read::match_layout;
pub use crate::catalog::read::try_image;
pub use crate::cluster::read::component;
pub use crate::cluster::read::component_report_matters;
pub use crate::cluster::read::settings;
pub use crate::holdings::Counts;
pub use crate::holdings::counts;
pub use crate::identity::read::is_certificate_good;
pub use crate::network::read::Usage;
pub use crate::network::read::child_networks;
pub use crate::network::read::network_ips;
pub use crate::network::read::network_usage;
pub use crate::network::read::project_ips;
pub use crate::tenancy::read::invite_is_backed;
pub use crate::tenancy::read::is_member_of_a_project;
pub use crate::tenancy::read::owns;

/// Machines that a project has.
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

/// How many orders to BMCs have not ended yet, by partition; partitions without any are left out.
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

/// Machines with a cable to a switch, and at which of its ports, in the order of ports.
pub fn switch_machines<'a>(
    tables: &'a Tables,
    switch: &'a SwitchId,
) -> impl Iterator<Item = (&'a str, &'a Arc<Machine>)> {
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

/// The machine of a partition that has a card of this address, or asked for a boot from it.
pub fn machine_of_mac<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    mac: MacAddr,
) -> Option<&'a Arc<Machine>> {
    partition_machines(tables, partition)
        .find(|it| it.hardware.nics.iter().any(|nic| nic.mac == mac) || it.boot_macs.contains(&mac))
}

/// Why a machine is not on offer now; none when it is. Tainted ones can be had by their id.
pub fn machine_obstacle(tables: &Tables, machine: MachineId) -> Option<String> {
    let Some(machine) = tables.get::<Machine>(&machine) else {
        return Some("it is not known".into());
    };
    if machine.allocation.is_some() {
        return Some("it is allocated".into());
    }
    apply::obstacle(tables, machine)
}

/// Where a machine and switches disagree on a cable, both stories a line.
pub fn cable_issues(tables: &Tables, machine: &Machine) -> Vec<String> {
    let mut lines = cables::disputed(tables, machine);
    lines.append(&mut cables::echoes(tables, machine));
    lines
}

/// Why the ports of a machine cannot be moved as they should; none when they can.
pub fn cable_trouble(tables: &Tables, machine: &Machine) -> Option<String> {
    cables::trouble(tables, machine)
}

/// What is missing of the cables that a machine should have; none when nothing is.
pub fn missing_cables(tables: &Tables, machine: &Machine) -> Option<String> {
    let is_told = !machine.hardware.nics.is_empty() && cables::is_managed(tables, machine);
    is_told.then(|| cables::missing(tables, machine)).flatten()
}

/// Machines of a size in a partition that anyone may have now, rack by rack.
pub fn allocatable_machines<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    size: &SizeId,
) -> impl Iterator<Item = &'a Arc<Machine>> {
    apply::candidates(tables, partition, size)
}

/// Members of the VPN whose allocation is over or ends: their nodes and keys must go.
pub fn vpn_leaving(tables: &Tables) -> impl Iterator<Item = &Arc<VpnMember>> {
    tables.all::<VpnMember>().filter(|it| {
        let machine = tables.get::<Machine>(&it.machine);
        let holder = machine.and_then(|machine| machine.allocation.as_ref());
        holder.is_none_or(|holder| holder.id != it.allocation)
            || machine.is_some_and(|machine| machine.is_leaving())
    })
}

/// Whether the disks of a machine can take a layout: `FilesystemService.Match`.
pub fn check_layout(tables: &Tables, machine: MachineId, layout: &Layout) -> Result<(), Error> {
    let machine = tables.require::<Machine>(&machine)?;
    crate::hardware::check_layout(layout, &machine.hardware)
}
