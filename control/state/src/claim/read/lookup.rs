//! Claims by project and name, and the host of one.

use std::sync::Arc;

use proto_types::{ClaimId, ProjectId};

use crate::claim::entity::Claim;
use crate::machine::entity::Machine;
use crate::pool::entity::PoolHost;
use crate::tables::Tables;

/// Claims of a project that are not over.
pub fn project_claims(tables: &Tables, project: ProjectId) -> impl Iterator<Item = &Arc<Claim>> {
    let ids = tables.index().claims.of_project(project);
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| tables.get::<Claim>(id))
}

/// The claim of a project that has a name and is not over.
pub fn named_claim<'a>(
    tables: &'a Tables,
    project: ProjectId,
    name: &str,
) -> Option<&'a Arc<Claim>> {
    let id = tables.index().claims.named(project, name)?;
    tables.get::<Claim>(&id)
}

/// The host that is bound to a claim, by the host's own word.
pub fn host_of_claim(tables: &Tables, claim: ClaimId) -> Option<&Arc<PoolHost>> {
    let machine = tables.index().hosts.bound.get(&claim)?;
    tables.get::<PoolHost>(machine)
}

/// The machine of the host that is bound to a claim.
pub fn machine_of_claim(tables: &Tables, claim: ClaimId) -> Option<&Arc<Machine>> {
    tables.get::<Machine>(&host_of_claim(tables, claim)?.machine)
}
