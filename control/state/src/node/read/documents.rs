//! Documents by kind, name and owner.

use std::sync::Arc;

use proto_types::ProjectId;

use crate::node::entity::{DocumentKind, NodeDocument};
use crate::tables::Tables;

/// Documents of a kind, in the order of ids.
pub fn documents(tables: &Tables, kind: DocumentKind) -> impl Iterator<Item = &Arc<NodeDocument>> {
    let ids = tables.index().nodes.documents.get(&kind);
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| tables.get::<NodeDocument>(id))
}

/// Documents of a project, or with `None` of the site, in the order of ids.
pub fn project_documents(
    tables: &Tables,
    owner: Option<ProjectId>,
    kind: DocumentKind,
) -> impl Iterator<Item = &Arc<NodeDocument>> {
    let ids = tables.index().nodes.owned_documents.get(&(owner, kind));
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| tables.get::<NodeDocument>(id))
}

/// The document of this name, the first one where names may repeat.
pub fn document_named<'a>(
    tables: &'a Tables,
    kind: DocumentKind,
    name: &str,
) -> Option<&'a Arc<NodeDocument>> {
    let key = (kind, name.to_owned());
    let ids = tables.index().nodes.document_names.get(&key)?;
    tables.get::<NodeDocument>(ids.first()?)
}
