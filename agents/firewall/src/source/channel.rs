use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{AppliedObjects, SourceObjects};

/// What is known of a source.
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

    /// Waits until the agent has applied, or refused, a snapshot since the last call, and returns
    /// what became of it. Never returns after the agent has ended.
    pub async fn next_applied(&mut self) -> AppliedObjects {
        loop {
            if self.applied.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let applied = self.applied.borrow_and_update().clone();
            if let Some(applied) = applied {
                return applied;
            }
        }
    }

    /// Is cancelled when the source must end.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}
