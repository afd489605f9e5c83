//! Questions about pools.

use std::sync::Arc;

use proto_types::PoolId;

use crate::meta::Labels;
use crate::pool::entity::{HostPool, PoolHost};
use crate::tables::Tables;

/// Hosts of a pool.
pub fn pool_hosts<'a>(
    tables: &'a Tables,
    pool: &PoolId,
) -> impl Iterator<Item = &'a Arc<PoolHost>> {
    let ids = tables.index().hosts.pools.get(pool);
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| tables.get::<PoolHost>(id))
}

/// The labels of a host that projects see.
pub fn published_labels(tables: &Tables, host: &PoolHost) -> Labels {
    let pool = tables.get::<HostPool>(&host.pool);
    let labels = host.meta.labels.iter();
    let published = labels.filter(|(key, _)| pool.is_some_and(|pool| pool.publishes(key)));
    published
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
