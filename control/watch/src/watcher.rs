//! One watch.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use control_gate::Caller;
use control_gate::refusal::{of_store, refused};
use control_gate::{Rights, ServiceContext, bears_rights};
use control_state::{Change, ErrorCode, Kind, Machine, Record, Tables};
use control_store::{Changes, Compacted, Revision, Subscription, WatchEvent};
use futures::stream;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchChangeType, WatchEvent};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};
use tonic::Status;

use super::encode::{self, ChangeMessages, is_part, machine_of_part, machine_revision};
use super::kinds::{self, Watchable};
use super::scope::{Scope, VisibilityContext, goes_by};
use super::{WatchSlot, WatchStream, Watches};

/// Objects in one message of a listing.
const LISTED_MAX: usize = 256;

/// The request of a watch.
#[derive(Debug)]
pub struct Ask {
    /// Scope of the watch.
    pub scope: Scope,
    /// Kinds to watch. Empty means every kind the caller may read.
    pub kinds: Vec<String>,
    /// Id of one object to watch. Empty means all.
    pub id: String,
    /// Resume after this revision; 0 lists the current objects first.
    pub from: u64,
}

/// A stream of changes for a caller.
///
/// # Errors
/// When the caller may not read what it asks for, when its revision is not kept any more, or when
/// there are too many watches.
pub async fn open(
    core: &Arc<ServiceContext>,
    watches: &Watches,
    caller: &Caller,
    ask: Ask,
) -> Result<WatchStream, Status> {
    let place = watches.place(&caller.user)?;
    let kinds = wanted(core, caller, &ask).await?;
    let mut view = WatchView {
        rights: Rights::with_reads(caller, kinds::reads(&ask.scope, &kinds))?,
        core: Arc::clone(core),
        scope: ask.scope,
        kinds,
        id: ask.id,
    };
    let (subscription, listing) = if ask.from == 0 {
        list(&mut view).await?
    } else {
        (go_on(&mut view, Revision(ask.from)).await?, None)
    };
    let mut bookmark = tokio::time::interval(watches.limits.bookmark);
    bookmark.set_missed_tick_behavior(MissedTickBehavior::Delay);
    bookmark.reset();
    let watcher = Watcher {
        watches: watches.clone(),
        expires: Box::pin(tokio::time::sleep_until(expiry(&view))),
        view,
        subscription,
        listing,
        bookmark,
        given_at: None,
        _place: place,
    };
    Ok(Box::pin(stream::unfold(Some(watcher), |watcher| async {
        let mut watcher = watcher?;
        let next = watcher.next().await;
        let watcher = next.is_ok().then_some(watcher);
        Some((next, watcher))
    })))
}

/// The kinds to show: those that the caller names, or all that it may read.
async fn wanted(
    core: &ServiceContext,
    caller: &Caller,
    ask: &Ask,
) -> Result<Vec<&'static Watchable>, Status> {
    if !ask.kinds.is_empty() {
        return kinds::named(&ask.scope, &ask.kinds);
    }
    let all = kinds::of_scope(&ask.scope);
    let readable = |tables: &Tables| {
        let may = |kind: &&'static Watchable| {
            let one = Rights::with_reads(caller, kinds::reads(&ask.scope, &[*kind]));
            one.is_ok_and(|mut one| one.look(tables, core, core.now()).is_ok())
        };
        all.into_iter().filter(may).collect()
    };
    core.store.read(readable).await.map_err(of_store)
}

/// When the token of a watch ends.
fn expiry(view: &WatchView) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let left = view.rights.expires().map_or(FAR, |at| {
        Duration::from_millis(at.since_ms(view.core.now())).min(FAR)
    });
    Instant::now() + left
}

/// Objects of the initial listing that are still to be sent.
#[derive(Debug)]
struct InitialListing {
    revision: Revision,
    left: VecDeque<(Record, u64)>,
}

/// A place in the history, and what is there before it.
async fn list(
    view: &mut WatchView,
) -> Result<(Subscription<Change>, Option<InitialListing>), Status> {
    let core = Arc::clone(&view.core);
    let mut subscription = core.store.watch();
    let look = |tables: &Tables, revision| {
        view.rights.look(tables, &core, core.now())?;
        let mut left = VecDeque::new();
        for kind in view.kinds.iter().map(|watchable| watchable.kind) {
            left.extend(
                tables
                    .records(kind)
                    .filter(|(record, _)| view.lists(tables, record)),
            );
        }
        Ok::<_, Status>(InitialListing { revision, left })
    };
    let listing: InitialListing = core.store.read_versioned(look).await.map_err(of_store)??;
    subscription.skip_to(listing.revision);
    Ok((subscription, Some(listing)))
}

/// The place in the history behind a revision.
async fn go_on(view: &mut WatchView, from: Revision) -> Result<Subscription<Change>, Status> {
    let core = Arc::clone(&view.core);
    let look = |tables: &Tables, revision: Revision| {
        let looked = view.rights.look(tables, &core, core.now());
        looked.map(|()| revision)
    };
    let newest = core.store.read_versioned(look).await.map_err(of_store)??;
    if from > newest {
        let message = format!(
            "revision {} has not been reached yet, only {}: it is another cluster's, or a backup \
             was restored",
            from.0, newest.0
        );
        return Err(refused(ErrorCode::WatchCompacted, message));
    }
    let compacted = |reason: Compacted| refused(ErrorCode::WatchCompacted, reason.to_string());
    core.store.watch_from(from).map_err(compacted)
}

/// Scope, kinds and rights of a watch.
struct WatchView {
    core: Arc<ServiceContext>,
    rights: Rights,
    scope: Scope,
    kinds: Vec<&'static Watchable>,
    id: String,
}

/// A change and its shared encoded messages.
#[derive(Clone, Copy)]
struct ChangeEvent<'a> {
    change: &'a Change,
    made: &'a ChangeMessages,
}

impl WatchView {
    fn shows(&self, tables: &Tables, record: &Record) -> bool {
        let view = VisibilityContext {
            tables,
            core: &self.core,
            rights: &self.rights,
        };
        self.scope.shows(record, view)
    }

    fn lists(&self, tables: &Tables, record: &Record) -> bool {
        self.shows(tables, record)
            && (self.id.is_empty() || goes_by(record, &record.key(), &self.id))
    }

    /// The name of a kind, if it is wanted. Parts are the machine's.
    fn name(&self, kind: Kind) -> Option<&'static str> {
        let kind = if is_part(kind) { Kind::Machine } else { kind };
        let wanted = self.kinds.iter().find(|watchable| watchable.kind == kind);
        wanted.map(|watchable| watchable.name)
    }

    /// The changes of one command that the watch shows.
    fn told(
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
                self.change(tables, revision, ChangeEvent { change, made }, changes)
            })
            .collect();
        if !told.is_empty() || changes.iter().any(|change| bears_rights(change.kind)) {
            let (core, now) = (&self.core, self.core.now());
            self.rights.look(tables, core, now)?;
        }
        Ok(told)
    }

    fn change(
        &self,
        tables: &Tables,
        revision: Revision,
        event: ChangeEvent<'_>,
        all: &[Change],
    ) -> Option<WatchChange> {
        let ChangeEvent { change, made } = event;
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
            (None, Some(it)) => (WatchChangeType::Created, made.now(tables, it, &self.scope)),
            (Some(_), Some(it)) => (WatchChangeType::Changed, made.now(tables, it, &self.scope)),
            (Some(it), None) => (WatchChangeType::Deleted, made.gone(tables, it, &self.scope)),
        };
        Some(WatchChange {
            r#type: r#type.into(),
            kind: kind.to_owned(),
            id: change.key.clone(),
            revision: revision.0,
            object: Some(object?),
        })
    }

    /// A machine of which only a part changed.
    fn part(
        &self,
        tables: &Tables,
        revision: Revision,
        event: ChangeEvent<'_>,
        all: &[Change],
    ) -> Option<WatchChange> {
        let ChangeEvent { change, made } = event;
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

    fn present(&self, tables: &Tables, record: &Record, revision: u64) -> Option<WatchChange> {
        let revision = match record {
            Record::Machine(it) => revision.max(parts_revision(tables, it, revision)),
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

/// One open watch.
struct Watcher {
    watches: Watches,
    view: WatchView,
    subscription: Subscription<Change>,
    listing: Option<InitialListing>,
    bookmark: Interval,
    /// Runs until the token ends.
    expires: Pin<Box<Sleep>>,
    /// When the last message was handed out.
    given_at: Option<Instant>,
    _place: WatchSlot,
}

impl Watcher {
    /// The next message; an error ends the watch.
    async fn next(&mut self) -> Result<WatchEvent, Status> {
        let stall = self.watches.limits.stall;
        if self.given_at.is_some_and(|at| at.elapsed() > stall) {
            let message = format!(
                "a message was not taken within {} s; go on from {}",
                stall.as_secs(),
                self.place()
            );
            return Err(refused(ErrorCode::WatchTooSlow, message));
        }
        let event = match self.listing.take() {
            Some(listing) => self.listed(listing)?,
            None => self.changed().await?,
        };
        self.bookmark.reset();
        self.given_at = Some(Instant::now());
        Ok(event)
    }

    /// How a caller goes on.
    fn place(&self) -> String {
        match &self.listing {
            Some(_) => "the beginning".to_owned(),
            None => format!("revision {}", self.subscription.place().0),
        }
    }

    /// The next part of what was there at the beginning.
    fn listed(&mut self, mut listing: InitialListing) -> Result<WatchEvent, Status> {
        let part = listing.left.len().min(LISTED_MAX);
        let part: Vec<_> = listing.left.drain(..part).collect();
        let view = &mut self.view;
        let core = Arc::clone(&view.core);
        let look = |tables: &Tables| {
            view.rights.look(tables, &core, core.now())?;
            let present = |(record, at): &(Record, u64)| view.present(tables, record, *at);
            Ok(part.iter().filter_map(present).collect())
        };
        let changes: Result<Vec<_>, Status> = core.store.read_local(look).map_err(of_store)?;
        let listed = listing.left.is_empty();
        let event = WatchEvent {
            revision: if listed { listing.revision.0 } else { 0 },
            changes: changes?,
            listed,
        };
        self.listing = (!listed).then_some(listing);
        Ok(event)
    }

    /// The next message about what changed, or a bookmark.
    async fn changed(&mut self) -> Result<WatchEvent, Status> {
        let stop = self.watches.stop.clone();
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(self.stopped()),
                () = &mut self.expires => {
                    self.expired()?;
                    continue;
                }
                _ = self.bookmark.tick() => return Ok(self.event(Vec::new())),
                event = self.subscription.next() => event,
            };
            let (revision, changes) = match event {
                Some(WatchEvent::Changed { revision, changes }) => (revision, changes),
                Some(WatchEvent::Resync) => {
                    let message = "changes were missed, or the whole state was replaced";
                    return Err(refused(ErrorCode::WatchCompacted, message));
                }
                None => return Err(self.stopped()),
            };
            let view = &mut self.view;
            let is_news =
                |change: &Change| bears_rights(change.kind) || view.name(change.kind).is_some();
            if !changes.iter().any(is_news) {
                continue;
            }
            let store = view.core.store.clone();
            let told = store.read_local(|tables| view.told(tables, revision, &changes));
            let told = told.map_err(of_store)??;
            if !told.is_empty() {
                return Ok(self.event(told));
            }
        }
    }

    /// The token's time is over, unless it was prolonged.
    fn expired(&mut self) -> Result<(), Status> {
        let view = &mut self.view;
        let core = Arc::clone(&view.core);
        let look = |tables: &Tables| view.rights.look(tables, &core, core.now());
        core.store.read_local(look).map_err(of_store)??;
        self.expires.as_mut().reset(expiry(&self.view));
        Ok(())
    }

    fn event(&self, changes: Vec<WatchChange>) -> WatchEvent {
        WatchEvent {
            revision: self.subscription.place().0,
            changes,
            listed: false,
        }
    }

    fn stopped(&self) -> Status {
        let message = format!("this node stops; go on from {}", self.place());
        refused(ErrorCode::Unavailable, message)
    }
}
