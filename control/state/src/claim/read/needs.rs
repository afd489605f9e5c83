//! The needs of a claim, prepared once and held against many shapes of hosts.

use proto_types::{PartitionId, PoolId, ProjectId, SizeId, Timestamp};

use crate::catalog::entity::Classification;
use crate::catalog::read::{check_image_constraint, layout_for, newest_image};
use crate::claim::entity::{Claim, ClaimSpec};
use crate::network::entity::Network;
use crate::pool::entity::{Claimant, HostPool, HostShape, HostTaint, ProjectLabels};
use crate::tables::Tables;

/// A claim, ready to be held against hosts.
pub(super) struct ClaimNeeds<'a> {
    tables: &'a Tables,
    /// The claim.
    pub(super) claim: &'a Claim,
    claimant: Claimant<'a>,
    /// The partition of its networks. `None` means any.
    partition: Option<&'a PartitionId>,
    now: Timestamp,
}

/// A project as deploy policies see it.
pub(crate) fn claimant(tables: &Tables, project: ProjectId) -> Claimant<'_> {
    let labels = tables.get::<ProjectLabels>(&project);
    Claimant {
        project,
        id_text: project.to_string(),
        alias: labels.and_then(|labels| labels.alias.as_deref()),
        labels: labels.map(|labels| &labels.labels),
    }
}

impl<'a> ClaimNeeds<'a> {
    /// The needs of a claim at a time.
    pub(super) fn of(tables: &'a Tables, claim: &'a Claim, now: Timestamp) -> Self {
        let networks = claim.spec.networks.iter();
        let mut partitions = networks.filter_map(|wanted| {
            let network = tables.get::<Network>(&wanted.network)?;
            network.partition.as_ref()
        });
        Self {
            tables,
            claim,
            claimant: claimant(tables, claim.project),
            partition: partitions.next(),
            now,
        }
    }

    pub(super) fn spec(&self) -> &'a ClaimSpec {
        &self.claim.spec
    }

    /// The highest priority that a pool lets the claim have. `None` means that the claim does not
    /// name the pool, that there is none of that name, or that it does not admit the project: all
    /// three look alike.
    pub(super) fn admitted(&self, pool: &PoolId) -> Option<u32> {
        let pools = &self.spec().pools;
        if !pools.is_empty() && !pools.contains(pool) {
            return None;
        }
        let policies = self.tables.index().hosts.policies.get(pool)?;
        policies.admits(&self.claimant)
    }

    /// `true` if hosts of a shape fit the claim, in any failure domain and with any image. The cheap
    /// conditions come first.
    pub(super) fn fits(&self, pool: &HostPool, shape: &HostShape) -> bool {
        let is_there = self
            .partition
            .is_none_or(|wanted| shape.partition.as_ref() == Some(wanted));
        is_there
            && shape.taints.iter().all(|taint| self.tolerates(taint))
            && self.spec().selector.holds(|key| value_of(pool, shape, key))
            && self.is_let_in(shape)
    }

    /// `true` if the claim does not need another failure domain.
    pub(super) fn is_in_domain(&self, shape: &HostShape) -> bool {
        let domain = self.spec().domain.as_ref();
        domain.is_none_or(|wish| !wish.required || wish.name == shape.domain)
    }

    fn tolerates(&self, taint: &HostTaint) -> bool {
        self.spec().tolerations.iter().any(|tolerated| {
            let value = tolerated.value.as_ref();
            tolerated.key == taint.key && value.is_none_or(|value| *value == taint.value)
        })
    }

    /// `true` if the hosts' own policies admit the project.
    fn is_let_in(&self, shape: &HostShape) -> bool {
        if shape.only.is_empty() {
            return true;
        }
        let narrowing = self.tables.index().hosts.narrowing.get(&shape.only);
        narrowing.is_some_and(|policies| policies.admits(&self.claimant).is_some())
    }

    /// `true` if the image can be installed on the size of the hosts. It looks at every image, and so
    /// comes last.
    pub(super) fn can_be_installed(&self, shape: &HostShape) -> bool {
        let (Some(image), Some(size)) = (&self.spec().image, &shape.size) else {
            return true;
        };
        self.finds_layout(image.as_str(), size).unwrap_or(false)
    }

    fn finds_layout(&self, image: &str, size: &SizeId) -> Option<bool> {
        let supported = Some(Classification::Supported);
        // An image that is gone is told when the host is allocated, with its own error.
        let Ok(image) = newest_image(self.tables, image, supported, self.now) else {
            return Some(true);
        };
        check_image_constraint(self.tables, size, image).ok()?;
        let is_named = self.spec().layout.is_some();
        Some(is_named || layout_for(self.tables, size, image).is_ok())
    }
}

/// The value of a label as a project sees it: a label that is not published is not there.
pub(super) fn value_of<'s>(pool: &HostPool, shape: &'s HostShape, key: &str) -> Option<&'s str> {
    let value = shape.labels.get(key)?;
    pool.publishes(key).then_some(value.as_str())
}
