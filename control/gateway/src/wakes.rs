//! Who looks at the state again, and when.
//!
//! One task reads the store's changes and wakes the streams that they concern. Ten thousand
//! streams that each read all changes would cost ten thousand looks a change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use control_state::life::{Fabric, SwitchDesired};
use control_state::{Change, Kind, Machine, Record, StateError};
use control_store::{Revision, Store, StoreError, Subscription, WatchEvent};
use parking_lot::{Mutex, MutexGuard, RwLock};
use proto_types::{MachineId, PartitionId, SwitchId};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Changes that come within this time are looked at together.
const GATHER: Duration = Duration::from_millis(10);

/// What a stream is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    /// What a switch shall do.
    Switch(SwitchId),
    /// What a machine's hammer shall do.
    Machine(MachineId),
    /// Orders to BMCs of a partition.
    Orders(PartitionId),
    /// What machines of a partition boot.
    Boots(PartitionId),
}

/// The switches' intents, as of a revision.
#[derive(Debug, Default)]
struct Known {
    fabric: Fabric,
    revision: Revision,
}

/// Wakes streams. Sessions are served by one node, so that all of them are here.
#[derive(Debug)]
pub(crate) struct Wakes {
    waiting: Mutex<BTreeMap<Concern, watch::Sender<()>>>,
    known: RwLock<Known>,
    /// Up to where changes were dealt with.
    looked: watch::Sender<Revision>,
}

/// A place among those who wait; given up when dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    wakes: Arc<Wakes>,
    concern: Concern,
    /// None only while it is dropped.
    woken: Option<watch::Receiver<()>>,
}

impl Waiting {
    /// Returns once something happened that concerns it, also when that was before the call.
    pub(crate) async fn woken(&mut self) {
        let woken = match &mut self.woken {
            Some(woken) => woken.changed().await.is_ok(),
            None => false,
        };
        if !woken {
            // The gateway is gone, and its sessions go with it.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self.wakes.waiting();
        self.woken = None;
        if let Entry::Occupied(entry) = waiting.entry(self.concern.clone())
            && entry.get().receiver_count() == 0
        {
            entry.remove();
        }
    }
}

impl Wakes {
    /// With what the state is now, and what comes after it.
    ///
    /// # Errors
    /// The store is shut down.
    pub(crate) fn open(store: &Store) -> Result<(Self, Subscription<Change>), StoreError> {
        let events = store.watch();
        let known = read(store)?;
        let wakes = Self {
            waiting: Mutex::default(),
            looked: watch::Sender::new(known.revision),
            known: RwLock::new(known),
        };
        Ok((wakes, events))
    }

    /// Waits among the others. Whatever changes from now on wakes.
    pub(crate) fn wait_for(self: &Arc<Self>, concern: Concern) -> Waiting {
        let mut waiting = self.waiting();
        let sender = waiting.entry(concern.clone());
        let woken = sender.or_insert_with(|| watch::Sender::new(())).subscribe();
        Waiting {
            wakes: Arc::clone(self),
            concern,
            woken: Some(woken),
        }
    }

    /// Waits until all up to `revision` was dealt with.
    pub(crate) async fn reached(&self, revision: Revision) {
        // Never closed: the sender is here.
        drop(self.looked.subscribe().wait_for(|at| *at >= revision).await);
    }

    /// What a switch shall do, and as of which revision that is.
    ///
    /// # Errors
    /// No such switch.
    pub(crate) fn switch(&self, id: &SwitchId) -> Result<(SwitchDesired, Revision), StateError> {
        let known = self.known.read();
        Ok((known.fabric.desired(id)?, known.revision))
    }

    /// Wakes whom changes concern, until the store or `stop` ends it.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Store,
        mut events: Subscription<Change>,
        stop: CancellationToken,
    ) {
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            let Some(event) = event else { return };
            sleep(GATHER).await;
            let later = std::iter::from_fn(|| events.next_now());
            let gathered: Vec<_> = std::iter::once(event).chain(later).collect();
            if self.deal_with(&store, &gathered).is_err() {
                return;
            }
        }
    }

    fn deal_with(&self, store: &Store, events: &[Event<Change>]) -> Result<(), StoreError> {
        let is_whole = |event: &WatchEvent<Change>| matches!(event, WatchEvent::Resync);
        if events.iter().any(is_whole) {
            let known = read(store)?;
            let revision = known.revision;
            *self.known.write() = known;
            self.looked.send_replace(revision);
            self.waiting().values().for_each(wake);
            return Ok(());
        }
        let mut switches = Vec::new();
        store.read_local(|tables| {
            let mut known = self.known.write();
            for event in events {
                if let WatchEvent::Changed { revision, changes } = event {
                    switches.extend(known.fabric.take(tables, changes));
                    known.revision = *revision;
                }
            }
            self.looked.send_replace(known.revision);
        })?;
        let waiting = self.waiting();
        for id in switches {
            waiting.get(&Concern::Switch(id)).into_iter().for_each(wake);
        }
        for event in events {
            let WatchEvent::Changed { changes, .. } = event else {
                continue;
            };
            changes.iter().for_each(|it| concerned(&waiting, it));
        }
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Concern, watch::Sender<()>>> {
        self.waiting.lock()
    }
}

fn read(store: &Store) -> Result<Known, StoreError> {
    store.read_local(|tables| Known {
        fabric: Fabric::of(tables),
        revision: Revision(tables.revision()),
    })
}

fn wake(waiting: &watch::Sender<()>) {
    waiting.send_replace(());
}

/// Wakes everybody but switches, who are found by the fabric.
fn concerned(waiting: &BTreeMap<Concern, watch::Sender<()>>, change: &Change) {
    let of = |concern: Concern| waiting.get(&concern).into_iter().for_each(wake);
    if change.kind == Kind::Image {
        // Whoever installs it looks whether it is still there; images change seldom.
        let machines = waiting
            .iter()
            .filter(|(it, _)| matches!(it, Concern::Machine(_)));
        machines.for_each(|(_, sender)| wake(sender));
    }
    if ends_hold(change) {
        waiting.values().for_each(wake);
    }
    if let Some(partition) = moved_bmc(change) {
        of(Concern::Orders(partition));
    }
    for record in [&change.before, &change.record].into_iter().flatten() {
        match record {
            Record::Machine(machine) => {
                of(Concern::Machine(machine.id));
                if let Some(partition) = &machine.partition {
                    of(Concern::Boots(partition.clone()));
                }
            }
            Record::Partition(partition) => of(Concern::Boots(partition.id.clone())),
            Record::BmcOrder(order) => of(Concern::Orders(order.partition.clone())),
            _ => {}
        }
    }
}

/// `true` if a restored state is reconciled by it: what was held goes out.
fn ends_hold(change: &Change) -> bool {
    let is_held = |record: Option<&Record>| match record {
        Some(Record::ClusterClock(clock)) => clock.restored.is_some(),
        _ => false,
    };
    is_held(change.before.as_ref()) && !is_held(change.record.as_ref())
}

/// The partition of a machine whose orders are held from now on, or no longer, or go to another BMC.
fn moved_bmc(change: &Change) -> Option<PartitionId> {
    let (Some(Record::Machine(before)), Some(Record::Machine(after))) =
        (&change.before, &change.record)
    else {
        return None;
    };
    let address = |machine: &Machine| machine.bmc.as_ref().map(|bmc| bmc.address.clone());
    let is_same = before.is_bmc_contested() == after.is_bmc_contested()
        && before.condition.state == after.condition.state
        && address(before) == address(after);
    after.partition.clone().filter(|_| !is_same)
}
