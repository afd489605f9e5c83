//! Whose a machine is: its owner, its lessee, and the node allocation that holds it.

use proto_types::{NodeAllocationId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// The projects that a machine belongs to. A machine with neither owner nor lessee is the site's:
/// every project may get it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tenure {
    /// The project that administers it. `None` means the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<ProjectId>,
    /// The project that uses it as long as its lease runs. `None` means that it is not leased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lessee: Option<ProjectId>,
    /// The end of its lease, as the [`Lease`](crate::Lease) has it: watches of the machine show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Timestamp>,
    /// Time of the warning that this end is near, as the lease has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_warned_at: Option<Timestamp>,
    /// The node allocation that holds it. `None` means that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_by: Option<NodeAllocationId>,
}

/// The projects that may allocate a machine. Not to be confused with a [`HostPool`](crate::HostPool):
/// nobody but claims gets the hosts of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachinePool {
    /// Every project.
    Shared,
    /// This project alone: the lessee, or the owner of a machine that is not leased.
    Of(ProjectId),
}

/// The relation of a project to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TenureRelation {
    /// It administers the machine.
    Owner,
    /// It uses the machine as long as its lease runs.
    Lessee,
}

impl Tenure {
    /// `true` if the machine is the site's, and nothing holds it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Ends the lease, and with it what holds the machine under the lease.
    pub(crate) fn end_lease(&mut self) -> Option<NodeAllocationId> {
        self.lessee = None;
        self.lease_expires_at = None;
        self.lease_warned_at = None;
        self.reserved_by.take()
    }

    /// The projects that may allocate the machine.
    pub fn pool(&self) -> MachinePool {
        let user = self.lessee.or(self.owner);
        user.map_or(MachinePool::Shared, MachinePool::Of)
    }

    /// The relation of a project. `None` means that it has none: the machine is another project's, or
    /// the site's. A missing owner or lessee equals no project.
    pub fn relation(&self, project: ProjectId) -> Option<TenureRelation> {
        if self.lessee == Some(project) {
            Some(TenureRelation::Lessee)
        } else if self.owner == Some(project) {
            Some(TenureRelation::Owner)
        } else {
            None
        }
    }
}

impl TenureRelation {
    /// Name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Lessee => "lessee",
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn project(number: u128) -> ProjectId {
        Uuid::from_u128(number).into()
    }

    #[test]
    fn pools_and_relations() {
        use TenureRelation::{Lessee, Owner};
        let (one, two) = (Some(project(1)), Some(project(2)));
        let of = |number| MachinePool::Of(project(number));
        for (owner, lessee, pool, first, second) in [
            (None, None, MachinePool::Shared, None, None),
            (one, None, of(1), Some(Owner), None),
            (one, two, of(2), Some(Owner), Some(Lessee)),
            (None, two, of(2), None, Some(Lessee)),
        ] {
            let tenure = Tenure {
                owner,
                lessee,
                ..Tenure::default()
            };
            assert_eq!(tenure.pool(), pool, "{tenure:?}");
            assert_eq!(tenure.relation(project(1)), first, "{tenure:?}");
            assert_eq!(tenure.relation(project(2)), second, "{tenure:?}");
            assert_eq!(tenure.relation(project(3)), None, "{tenure:?}");
            assert_eq!(tenure.is_default(), pool == MachinePool::Shared);
        }
    }
}
