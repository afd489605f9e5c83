use std::sync::Arc;

use agents_update::UpdateStatus;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{AppliedObjects, CandidateSender, MonitorReport, SourceObjects};
use crate::monitor::Statistics;
use crate::routes::ObservedDistance;

/// The state of a source, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceState {
    /// The newest snapshot. `None` if none has arrived yet.
    pub objects: Option<Arc<SourceObjects>>,
    /// The reason why the source does not answer now. `None` if it does, or was not asked yet.
    pub fault: Option<String>,
}

/// A source's end of its channel to the agent.
#[derive(Debug)]
pub struct SourceLink {
    pub(super) state: watch::Sender<SourceState>,
    pub(super) wake: Arc<Notify>,
    pub(super) applied: watch::Receiver<Option<AppliedObjects>>,
    pub(super) initial: Arc<SourceObjects>,
    pub(super) reports: watch::Receiver<Option<Arc<MonitorReport>>>,
    pub(super) statistics: watch::Receiver<Option<Arc<Statistics>>>,
    pub(super) routes: watch::Receiver<Option<ObservedDistance>>,
    pub(super) updates: watch::Receiver<Option<UpdateStatus>>,
    pub(super) candidates: CandidateSender,
    pub(super) stop: CancellationToken,
}

impl SourceLink {
    /// Delivers the newest snapshot. The source answers, so a fault is over.
    pub fn deliver(&self, objects: SourceObjects) {
        self.update(|state| {
            if state.objects.as_deref() != Some(&objects) {
                state.objects = Some(Arc::new(objects));
            }
            state.fault = None;
        });
    }

    /// Reports that the source does not answer. Its last snapshot stays.
    pub fn fail(&self, reason: String) {
        self.update(|state| state.fault = Some(reason));
    }

    fn update(&self, change: impl FnOnce(&mut SourceState)) {
        let is_changed = self.state.send_if_modified(|state| {
            let before = state.clone();
            change(state);
            // Pointers: what is equal was not replaced.
            let same = |a: &Option<Arc<SourceObjects>>, b: &Option<Arc<SourceObjects>>| {
                a.as_ref().map(Arc::as_ptr) == b.as_ref().map(Arc::as_ptr)
            };
            !same(&state.objects, &before.objects) || state.fault != before.fault
        });
        if is_changed {
            self.wake.notify_one();
        }
    }

    /// The newest snapshot; before the first one, that which is in force since the boot. Empty if
    /// there is none.
    #[must_use]
    pub fn last(&self) -> Arc<SourceObjects> {
        let newest = self.state.borrow().objects.clone();
        newest.unwrap_or_else(|| Arc::clone(&self.initial))
    }

    /// The fate of the last snapshot that the agent has tried. `None` if it tried none yet.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<Option<AppliedObjects>> {
        self.applied.clone()
    }

    /// The newest report of the firewall's counters. `None` if there is none yet.
    #[must_use]
    pub fn reports(&self) -> watch::Receiver<Option<Arc<MonitorReport>>> {
        self.reports.clone()
    }

    /// The newest reading of the kernel's counters. `None` if there is none yet.
    #[must_use]
    pub fn statistics(&self) -> watch::Receiver<Option<Arc<Statistics>>> {
        self.statistics.clone()
    }

    /// The distance that the routing daemon has. `None` if it was not looked at yet.
    #[must_use]
    pub fn routes(&self) -> watch::Receiver<Option<ObservedDistance>> {
        self.routes.clone()
    }

    /// The state of self-update. `None` before the first look at it.
    #[must_use]
    pub fn updates(&self) -> watch::Receiver<Option<UpdateStatus>> {
        self.updates.clone()
    }

    /// The way to ask what a snapshot would change.
    #[must_use]
    pub fn candidates(&self) -> CandidateSender {
        self.candidates.clone()
    }

    /// Is cancelled when the source must end.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}
