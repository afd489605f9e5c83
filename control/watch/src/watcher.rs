//! One watch.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use control_gate::Caller;
use control_gate::refusal::{of_store, refused};
use control_gate::{Rights, ServiceContext, bears_rights};
use control_state::{Change, ErrorCode, Record, Tables};
use control_store::{ChangeEvent, Compacted, Revision, Subscription};
use futures::stream;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchEvent};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};
use tonic::Status;

use super::kinds::{self, Watchable};
use super::scope::Scope;
use super::slots::WatchSlot;
use super::view::WatchView;
use super::{WatchStream, Watches};

/// Most objects in one message of the initial listing. The rest follows in further messages.
const LISTED_MAX: usize = 256;

/// The request of a watch.
#[derive(Debug)]
pub struct WatchQuery {
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
/// `permission_denied` if the caller may not read the kinds, MM-code `WatchCompacted` if the history
/// of its revision is gone, `TooMany` if there are too many watches.
pub async fn open(
    core: &Arc<ServiceContext>,
    watches: &Watches,
    caller: &Caller,
    query: WatchQuery,
) -> Result<WatchStream, Status> {
    let place = watches.place(&caller.user)?;
    let kinds = wanted(core, caller, &query).await?;
    let mut view = WatchView {
        rights: Rights::with_reads(caller, kinds::reads(&query.scope, &kinds))?,
        core: Arc::clone(core),
        scope: query.scope,
        kinds,
        id: query.id,
    };
    let (subscription, listing) = if query.from == 0 {
        list(&mut view).await?
    } else {
        (go_on(&mut view, Revision(query.from)).await?, None)
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
    query: &WatchQuery,
) -> Result<Vec<&'static Watchable>, Status> {
    if !query.kinds.is_empty() {
        return kinds::named(&query.scope, &query.kinds);
    }
    let all = kinds::of_scope(&query.scope);
    let readable = |tables: &Tables| {
        let may = |kind: &&'static Watchable| {
            let one = Rights::with_reads(caller, kinds::reads(&query.scope, &[*kind]));
            one.is_ok_and(|mut one| one.look(tables, core, core.now()).is_ok())
        };
        all.into_iter().filter(may).collect()
    };
    core.store.read(readable).await.map_err(of_store)
}

/// The moment at which the token of a watch expires.
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

/// Starts with a listing: the objects as of a revision, and the position in the history behind it.
async fn list(
    view: &mut WatchView,
) -> Result<(Subscription<Change>, Option<InitialListing>), Status> {
    let core = Arc::clone(&view.core);
    // Before the read: changes between the two would be lost otherwise. `skip_to` drops those that
    // the listing already has.
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

/// Resumes: the position in the history behind a revision.
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

/// One open watch.
struct Watcher {
    watches: Watches,
    view: WatchView,
    subscription: Subscription<Change>,
    listing: Option<InitialListing>,
    bookmark: Interval,
    /// Ends when the token expires.
    expires: Pin<Box<Sleep>>,
    /// Time of the last message. `None` before the first.
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

    /// The point from which the caller can resume, for an error text.
    fn place(&self) -> String {
        match &self.listing {
            Some(_) => "the beginning".to_owned(),
            None => format!("revision {}", self.subscription.place().0),
        }
    }

    /// The next message of the initial listing.
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

    /// The next message with changes, or a bookmark.
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
                Some(ChangeEvent::Changed { revision, changes }) => (revision, changes),
                Some(ChangeEvent::Resync) => {
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

    /// The token's expiry as of the last check has come. Goes on if its life was extended since.
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
