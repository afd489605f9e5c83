//! The changes of the state as one watch shows them.

use std::sync::Arc;

use control_gate::{Rights, ServiceContext, bears_rights};
use control_state::{Change, Kind, Machine, Record, Tables};
use control_store::{Changes, Revision};
use proto_public::metalmesh::admin::v1::{WatchChange, WatchChangeType};
use tonic::Status;

use super::encode::{self, ChangeMessages, is_part, machine_of_part, machine_revision};
use super::kinds::Watchable;
use super::scope::{Scope, VisibilityContext, goes_by};

/// Scope, kinds and rights of a watch.
pub(super) struct WatchView {
    pub(super) core: Arc<ServiceContext>,
    pub(super) rights: Rights,
    pub(super) scope: Scope,
    pub(super) kinds: Vec<&'static Watchable>,
    pub(super) id: String,
}

/// A change and its shared encoded messages.
#[derive(Clone, Copy)]
struct EncodedChange<'a> {
    change: &'a Change,
    made: &'a ChangeMessages,
}

impl WatchView {
    /// `true` if the scope and the caller's rights show the record.
    fn shows(&self, tables: &Tables, record: &Record) -> bool {
        let view = VisibilityContext {
            tables,
            core: &self.core,
            rights: &self.rights,
        };
        self.scope.shows(record, view)
    }

    /// `true` if the watch shows the record, and it is the one that the query names.
    pub(super) fn lists(&self, tables: &Tables, record: &Record) -> bool {
        self.shows(tables, record)
            && (self.id.is_empty() || goes_by(record, &record.key(), &self.id))
    }

    /// The name of a kind. `None` means that the watch does not show it. Parts count as machines.
    pub(super) fn name(&self, kind: Kind) -> Option<&'static str> {
        let kind = if is_part(kind) { Kind::Machine } else { kind };
        let wanted = self.kinds.iter().find(|watchable| watchable.kind == kind);
        wanted.map(|watchable| watchable.name)
    }

    /// The changes of one command that the watch shows.
    pub(super) fn told(
        &mut self,
        tables: &Tables,
        revision: Revision,
        changes: &Changes<Change>,
    ) -> Result<Vec<WatchChange>, Status> {
        let places = encode::places(changes);
        let told: Vec<WatchChange> = changes
            .iter()
            .zip(places.iter())
            .filter_map(|(change, made)| {
                self.change(tables, revision, EncodedChange { change, made }, changes)
            })
            .collect();
        // Before the message goes out: the command may have taken the caller's rights away.
        if !told.is_empty() || changes.iter().any(|change| bears_rights(change.kind)) {
            let (core, now) = (&self.core, self.core.now());
            self.rights.look(tables, core, now)?;
        }
        Ok(told)
    }

    /// One change as the watch shows it: an object that enters the view is created, one that leaves
    /// it is deleted. `None` means that the watch does not show it.
    fn change(
        &self,
        tables: &Tables,
        revision: Revision,
        event: EncodedChange<'_>,
        all: &[Change],
    ) -> Option<WatchChange> {
        let EncodedChange { change, made } = event;
        let kind = self.name(change.kind)?;
        if is_part(change.kind) {
            return self.part(tables, revision, event, all);
        }
        let fits = |record: &&Record| self.id.is_empty() || goes_by(record, &change.key, &self.id);
        let shown = |record: &&Record| self.shows(tables, record);
        let before = change.before.as_ref().filter(fits).filter(shown);
        let after = change.record.as_ref().filter(fits).filter(shown);
        let (r#type, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(now)) => (WatchChangeType::Created, made.now(tables, now, &self.scope)),
            (Some(_), Some(now)) => (WatchChangeType::Changed, made.now(tables, now, &self.scope)),
            (Some(old), None) => (
                WatchChangeType::Deleted,
                made.gone(tables, old, &self.scope),
            ),
        };
        Some(WatchChange {
            r#type: r#type.into(),
            kind: kind.to_owned(),
            id: change.key.clone(),
            revision: revision.0,
            object: Some(object?),
        })
    }

    /// The change of a machine of which only a part changed. `None` means that the watch does not
    /// show it, or that a change of the machine itself in the same command reports it.
    fn part(
        &self,
        tables: &Tables,
        revision: Revision,
        event: EncodedChange<'_>,
        all: &[Change],
    ) -> Option<WatchChange> {
        let EncodedChange { change, made } = event;
        let machine = machine_of_part(tables, change)?;
        let id = machine.id.to_string();
        let is_told = |other: &Change| other.kind == Kind::Machine && other.key == id;
        if all.iter().any(is_told) {
            return None;
        }
        if !self.lists(tables, &Record::Machine(Arc::clone(machine))) {
            return None;
        }
        Some(WatchChange {
            r#type: WatchChangeType::Changed.into(),
            kind: self.name(Kind::Machine)?.to_owned(),
            id,
            revision: revision.0,
            object: Some(made.part(tables, machine, revision.0, &self.scope)?),
        })
    }

    /// An entry of the initial listing.
    pub(super) fn present(
        &self,
        tables: &Tables,
        record: &Record,
        revision: u64,
    ) -> Option<WatchChange> {
        let revision = match record {
            Record::Machine(machine) => revision.max(parts_revision(tables, machine, revision)),
            _ => revision,
        };
        Some(WatchChange {
            r#type: WatchChangeType::Present.into(),
            kind: self.name(record.kind())?.to_owned(),
            id: record.key(),
            revision,
            object: Some(encode::object(tables, record, &self.scope)?),
        })
    }
}

/// The revision of a machine's parts, if the machine is still the one of `revision`.
fn parts_revision(tables: &Tables, machine: &Machine, revision: u64) -> u64 {
    let own = tables.revision_of::<Machine>(&machine.id);
    if own == Some(revision) {
        machine_revision(tables, machine)
    } else {
        revision
    }
}
