//! Node allocations by owner and name.

use std::sync::Arc;

use crate::allocation::entity::NodeAllocation;
use crate::machine::entity::MachinePool;
use crate::tables::Tables;

/// Node allocations of a project, or of administrators, in the order of ids.
pub fn pool_allocations(
    tables: &Tables,
    pool: MachinePool,
) -> impl Iterator<Item = &Arc<NodeAllocation>> {
    let ids = tables.index().pool_allocations.get(&pool);
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| tables.get::<NodeAllocation>(id))
}

/// The node allocation of this name, among those of a project or of administrators.
pub fn named_allocation<'a>(
    tables: &'a Tables,
    pool: MachinePool,
    name: &str,
) -> Option<&'a Arc<NodeAllocation>> {
    let key = (pool, name.to_owned());
    let id = tables.index().allocation_names.get(&key)?;
    tables.get::<NodeAllocation>(id)
}
