//! Wakes the streams of desired state.
//!
//! One task reads the store's changes and wakes the streams that they concern. If each of ten
//! thousand streams read all changes, one change would cost ten thousand looks.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use control_state::life::{SwitchDesired, concerned_firewalls};
use control_state::{
    AgentKey, Change, Kind, Machine, Record, RolloutKind, RolloutState, StateError,
};
use control_store::{ChangeEvent, Revision, Store, StoreError, Subscription};
use parking_lot::{Mutex, MutexGuard, RwLock};
use proto_types::{MachineId, PartitionId, SwitchId};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::switch_intents::SwitchIntents;

/// Changes within this time are gathered and wake each stream once.
const GATHER: Duration = Duration::from_millis(10);

/// The objects that a stream of desired state depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    /// The desired state of a switch.
    Switch(SwitchId),
    /// The orders to a machine's hammer.
    Machine(MachineId),
    /// The networks and rules of a firewall.
    Firewall(MachineId),
    /// Orders to BMCs of a partition.
    Orders(PartitionId),
    /// The boot targets of a partition's machines.
    Boots(PartitionId),
    /// The release of an agent's own program.
    Program(RolloutKind, AgentKey),
}

/// The streams that wait, by concern. Only the leader serves sessions, so that all streams are
/// here.
#[derive(Debug)]
pub(crate) struct Wakes {
    waiting: Mutex<BTreeMap<Concern, watch::Sender<()>>>,
    known: RwLock<SwitchIntents>,
    /// Revision up to which changes were taken over and streams woken.
    looked: watch::Sender<Revision>,
}

/// The subscription of a stream to its concern; ends when dropped.
#[derive(Debug)]
pub(crate) struct WakeSubscription {
    wakes: Arc<Wakes>,
    concern: Concern,
    /// `None` only during the drop.
    woken: Option<watch::Receiver<()>>,
}

impl WakeSubscription {
    /// Returns once a change concerned the stream, also one from before the call.
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

impl Drop for WakeSubscription {
    fn drop(&mut self) {
        let mut waiting = self.wakes.waiting();
        // The own receiver goes first: the entry is removed only if no other stream waits on it.
        self.woken = None;
        if let Entry::Occupied(entry) = waiting.entry(self.concern.clone())
            && entry.get().receiver_count() == 0
        {
            entry.remove();
        }
    }
}

impl Wakes {
    /// Reads the state, and returns the changes that come after it.
    ///
    /// # Errors
    /// The store is shut down.
    pub(crate) fn open(store: &Store) -> Result<(Self, Subscription<Change>), StoreError> {
        // The subscription comes before the read: a change between the two is read twice, the
        // other way round it would be lost.
        let events = store.watch();
        let known = SwitchIntents::read(store)?;
        let wakes = Self {
            waiting: Mutex::default(),
            looked: watch::Sender::new(known.revision),
            known: RwLock::new(known),
        };
        Ok((wakes, events))
    }

    /// Subscribes to a concern. Every change from now on wakes.
    pub(crate) fn wait_for(self: &Arc<Self>, concern: Concern) -> WakeSubscription {
        let mut waiting = self.waiting();
        let sender = waiting.entry(concern.clone());
        let woken = sender.or_insert_with(|| watch::Sender::new(())).subscribe();
        WakeSubscription {
            wakes: Arc::clone(self),
            concern,
            woken: Some(woken),
        }
    }

    /// Waits until the changes up to `revision` were taken over.
    pub(crate) async fn reached(&self, revision: Revision) {
        // Never closed: the sender is here.
        drop(self.looked.subscribe().wait_for(|at| *at >= revision).await);
    }

    /// The desired state of a switch, and the revision that it is of.
    ///
    /// # Errors
    /// `not_found` for an unknown switch.
    pub(crate) fn switch(&self, id: &SwitchId) -> Result<(SwitchDesired, Revision), StateError> {
        let known = self.known.read();
        Ok((known.fabric.desired(id)?, known.revision))
    }

    /// Wakes the streams that changes concern, until the store or `stop` ends it.
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

    fn deal_with(&self, store: &Store, events: &[ChangeEvent<Change>]) -> Result<(), StoreError> {
        // The store dropped changes that were not read in time: everything is read anew, and
        // every stream looks again.
        let is_whole = |event: &ChangeEvent<Change>| matches!(event, ChangeEvent::Resync);
        if events.iter().any(is_whole) {
            let known = SwitchIntents::read(store)?;
            let revision = known.revision;
            *self.known.write() = known;
            self.looked.send_replace(revision);
            self.waiting().values().for_each(wake);
            return Ok(());
        }
        let mut switches = Vec::new();
        let mut firewalls = BTreeSet::new();
        store.read_local(|tables| {
            let mut known = self.known.write();
            for event in events {
                if let ChangeEvent::Changed { revision, changes } = event {
                    switches.extend(known.fabric.take(tables, changes));
                    firewalls.extend(concerned_firewalls(tables, changes));
                    known.revision = *revision;
                }
            }
            self.looked.send_replace(known.revision);
        })?;
        let waiting = self.waiting();
        for id in switches {
            waiting.get(&Concern::Switch(id)).into_iter().for_each(wake);
        }
        for id in firewalls {
            let firewall = waiting.get(&Concern::Firewall(id));
            firewall.into_iter().for_each(wake);
        }
        for event in events {
            let ChangeEvent::Changed { changes, .. } = event else {
                continue;
            };
            changes
                .iter()
                .for_each(|change| wake_concerned(&waiting, change));
        }
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Concern, watch::Sender<()>>> {
        self.waiting.lock()
    }
}

fn wake(waiting: &watch::Sender<()>) {
    waiting.send_replace(());
}

/// Wakes the streams that a change concerns, except those of switches and firewalls: `Fabric` and
/// `concerned_firewalls` find them.
fn wake_concerned(waiting: &BTreeMap<Concern, watch::Sender<()>>, change: &Change) {
    let of = |concern: Concern| waiting.get(&concern).into_iter().for_each(wake);
    if change.kind == Kind::Image {
        // A machine that installs the image looks whether it still exists. The state has no index
        // from images to machines, and images change seldom.
        let machines = waiting
            .iter()
            .filter(|(concern, _)| matches!(concern, Concern::Machine(_)));
        machines.for_each(|(_, sender)| wake(sender));
    }
    if ends_hold(change) {
        waiting.values().for_each(wake);
    }
    if let Some(kind) = moved_release(change) {
        let programs = waiting
            .iter()
            .filter(|(concern, _)| matches!(concern, Concern::Program(of, _) if *of == kind));
        programs.for_each(|(_, sender)| wake(sender));
    }
    if let Some(partition) = moved_relay(change) {
        of(Concern::Boots(partition));
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

/// The agents of whom some may be told of another release: a rollout reached further ones, or is over. The
/// leader writes a rollout also when nothing of that changed.
fn moved_release(change: &Change) -> Option<RolloutKind> {
    let reach = |record: Option<&Record>| match record {
        Some(Record::Rollout(rollout)) => {
            let is_done = rollout.state == RolloutState::Done;
            Some((rollout.kind, rollout.told.clone(), is_done))
        }
        Some(Record::SiteRelease(release)) => Some((release.kind, BTreeSet::new(), true)),
        _ => None,
    };
    let (before, after) = (reach(change.before.as_ref()), reach(change.record.as_ref()));
    let is_site = change.kind == Kind::SiteRelease;
    if before == after && !is_site {
        return None;
    }
    after.or(before).map(|(kind, ..)| kind)
}

/// The partition of a switch whose management address came, went or changed: pixie knows relays by
/// it. Reports of switches change theirs all the time, and concern no pixie.
fn moved_relay(change: &Change) -> Option<PartitionId> {
    let switch = |record: Option<&Record>| match record {
        Some(Record::Switch(switch)) => Some((switch.partition.clone(), switch.management_ip)),
        _ => None,
    };
    let (before, after) = (
        switch(change.before.as_ref()),
        switch(change.record.as_ref()),
    );
    let is_same = before == after;
    let (partition, _) = after.or(before).filter(|_| !is_same)?;
    Some(partition)
}

/// `true` if the change reconciles a restored state: orders that were held go out.
fn ends_hold(change: &Change) -> bool {
    let is_held = |record: Option<&Record>| match record {
        Some(Record::ClusterClock(clock)) => clock.restored.is_some(),
        _ => false,
    };
    is_held(change.before.as_ref()) && !is_held(change.record.as_ref())
}

/// The partition of a machine whose orders are held from now on, are released, or go to another
/// BMC.
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
