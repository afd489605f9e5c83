//! Index of claims: by name, by project, by the way they wait, by time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use proto_types::{ClaimId, Digest, ProjectId, Timestamp};

use crate::claim::entity::{CLAIM_KEPT_MS, Claim, ClaimState};
use crate::tables::index::{Index, Indexed, insert, remove};

/// The place of a claim among those that wait: the priority first, then the order of arrival.
pub(crate) type QueuePlace = (Reverse<u32>, u64, ClaimId);

/// Lookups of claims.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ClaimIndex {
    /// Claims that are not over, by project and name.
    names: BTreeMap<(ProjectId, String), ClaimId>,
    /// Claims that are not over, by project.
    projects: BTreeMap<ProjectId, BTreeSet<ClaimId>>,
    /// Waiting claims by project and class. Only the first of a class is held against hosts.
    waiting: BTreeMap<(ProjectId, Digest), BTreeSet<QueuePlace>>,
    /// Claims by the time at which a step is tried again, or their record is deleted.
    due: BTreeSet<(Timestamp, ClaimId)>,
}

impl ClaimIndex {
    /// The claim of a name.
    pub(crate) fn named(&self, project: ProjectId, name: &str) -> Option<ClaimId> {
        self.names.get(&(project, name.to_owned())).copied()
    }

    /// The claims of a project that are not over.
    pub(crate) fn of_project(&self, project: ProjectId) -> Option<&BTreeSet<ClaimId>> {
        self.projects.get(&project)
    }

    /// The first claim of each class that waits.
    pub(crate) fn heads(&self) -> impl Iterator<Item = QueuePlace> + '_ {
        self.waiting.values().filter_map(first)
    }

    /// The first claim of each class of a project that waits.
    pub(crate) fn heads_of(&self, project: ProjectId) -> impl Iterator<Item = QueuePlace> + '_ {
        self.classes_of(project)
            .filter_map(|(_, queue)| first(queue))
    }

    /// Number of classes in which claims of a project wait.
    pub(crate) fn class_count(&self, project: ProjectId) -> usize {
        self.classes_of(project).count()
    }

    /// The first claim of a class. `None` means that no claim of it waits.
    pub(crate) fn head(&self, project: ProjectId, class: &Digest) -> Option<QueuePlace> {
        first(self.waiting.get(&(project, class.clone()))?)
    }

    /// Claims whose time has come.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = ClaimId> + '_ {
        let due = self.due.iter().take_while(move |(at, _)| *at <= now);
        due.map(|(_, claim)| *claim)
    }

    /// `true` if no claim waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    fn classes_of(
        &self,
        project: ProjectId,
    ) -> impl Iterator<Item = (&(ProjectId, Digest), &BTreeSet<QueuePlace>)> {
        // No digest is before this one.
        let first = (project, Digest::sha256([0; 32]));
        let classes = self.waiting.range(first..);
        classes.take_while(move |((of, _), _)| *of == project)
    }
}

fn first(queue: &BTreeSet<QueuePlace>) -> Option<QueuePlace> {
    queue.first().copied()
}

fn place(claim: &Claim) -> QueuePlace {
    (Reverse(claim.spec.priority), claim.queue.number, claim.id)
}

/// The time at which something is due for a claim. `None` means that nothing is.
fn due_at(claim: &Claim) -> Option<Timestamp> {
    match claim.state {
        ClaimState::Gone => Some(claim.since.plus_ms(CLAIM_KEPT_MS)),
        _ => claim.trouble.as_ref().and_then(|trouble| trouble.retry_at),
    }
}

impl Indexed for Claim {
    fn add_to(&self, index: &mut Index) {
        let claims = &mut index.claims;
        if self.state != ClaimState::Gone {
            let name = (self.project, self.name.clone());
            claims.names.insert(name, self.id);
            insert(&mut claims.projects, self.project, self.id);
        }
        if self.is_waiting() {
            let class = (self.project, self.queue.class.clone());
            insert(&mut claims.waiting, class, place(self));
        }
        if let Some(at) = due_at(self) {
            claims.due.insert((at, self.id));
        }
    }
    fn remove_from(&self, index: &mut Index) {
        let claims = &mut index.claims;
        if self.state != ClaimState::Gone {
            claims.names.remove(&(self.project, self.name.clone()));
            remove(&mut claims.projects, &self.project, &self.id);
        }
        if self.is_waiting() {
            let class = (self.project, self.queue.class.clone());
            remove(&mut claims.waiting, &class, &place(self));
        }
        if let Some(at) = due_at(self) {
            claims.due.remove(&(at, self.id));
        }
    }
}
