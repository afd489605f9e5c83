//! Indexes of owners, leases, node allocations, and the machines that these choose from.

use proto_types::ProjectId;

use crate::allocation::entity::NodeAllocation;
use crate::lease::entity::Lease;
use crate::machine::entity::{Availability, Machine, MachinePool, Phase};
use crate::tables::index::{Index, Indexed, insert, remove, subtract};

/// Resource class and pool in which node allocations find the machine. `None` without a class, and for
/// a host that only claims get.
fn class_of(machine: &Machine) -> Option<(String, MachinePool)> {
    if machine.pool.is_some() {
        return None;
    }
    let class = machine.capability.resource_class.as_ref()?;
    Some((class.canonical(), machine.tenure.pool()))
}

/// `true` if a node allocation may take the machine, by its own fields: it may still be dead.
fn is_free(machine: &Machine) -> bool {
    machine.phase == Phase::Waiting
        && !machine.dirty
        && machine.allocation.is_none()
        && machine.tenure.reserved_by.is_none()
        && !machine.withheld
        && machine.condition.state == Availability::Available
}

fn projects(machine: &Machine) -> impl Iterator<Item = ProjectId> {
    machine
        .tenure
        .owner
        .into_iter()
        .chain(machine.tenure.lessee)
}

/// Adds a machine to the indexes by owner, lessee and class.
pub(super) fn add_machine(machine: &Machine, index: &mut Index) {
    for project in projects(machine) {
        insert(&mut index.tenured_machines, project, machine.id);
    }
    let Some(class) = class_of(machine) else {
        return;
    };
    *index.class_machines.entry(class.clone()).or_default() += 1;
    if !is_free(machine) {
        return;
    }
    for name in &machine.capability.traits {
        let with_trait = (class.0.clone(), class.1, name.clone());
        insert(&mut index.free_traits, with_trait, machine.id);
    }
    insert(&mut index.free_machines, class, machine.id);
}

/// Removes what [`add_machine`] added.
pub(super) fn remove_machine(machine: &Machine, index: &mut Index) {
    for project in projects(machine) {
        remove(&mut index.tenured_machines, &project, &machine.id);
    }
    let Some(class) = class_of(machine) else {
        return;
    };
    subtract(&mut index.class_machines, class.clone());
    if !is_free(machine) {
        return;
    }
    for name in &machine.capability.traits {
        let with_trait = (class.0.clone(), class.1, name.clone());
        remove(&mut index.free_traits, &with_trait, &machine.id);
    }
    remove(&mut index.free_machines, &class, &machine.id);
}

impl Indexed for Lease {
    fn add_to(&self, index: &mut Index) {
        index.due_leases.insert((self.due_at(), self.machine));
    }
    fn remove_from(&self, index: &mut Index) {
        index.due_leases.remove(&(self.due_at(), self.machine));
    }
}

impl Indexed for NodeAllocation {
    fn add_to(&self, index: &mut Index) {
        insert(&mut index.pool_allocations, self.pool(), self.id);
        if let Some(name) = &self.name {
            let key = (self.pool(), name.clone());
            index.allocation_names.insert(key, self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        remove(&mut index.pool_allocations, &self.pool(), &self.id);
        if let Some(name) = &self.name {
            index.allocation_names.remove(&(self.pool(), name.clone()));
        }
    }
}
