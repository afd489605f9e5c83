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

/// Labels and annotations of a host that its pool publishes as metadata of its claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PublishedMetadata {
    /// Labels.
    pub(crate) labels: Labels,
    /// Annotations.
    pub(crate) annotations: Labels,
    /// Number of those that do not fit.
    pub(crate) omitted: usize,
}

/// The metadata that a host's pool publishes of it.
pub(crate) fn published_metadata(tables: &Tables, host: &PoolHost) -> PublishedMetadata {
    let Some(filter) = tables.index().hosts.metadata.get(&host.pool) else {
        return PublishedMetadata::default();
    };
    let (labels, labels_omitted) = filter.labels.published(&host.meta.labels);
    let (annotations, omitted) = filter.annotations.published(&host.annotations);
    PublishedMetadata {
        labels,
        annotations,
        omitted: labels_omitted + omitted,
    }
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
