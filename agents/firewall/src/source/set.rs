use std::collections::BTreeMap;
use std::sync::Arc;

use agents_update::UpdateStatus;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use super::candidates::CandidateQueue;
use super::spec::SourceSpec;
use super::{
    AppliedObjects, CandidateQuestion, CandidateSender, CollectedObjects, MonitorReport,
    SourceLink, SourceObjects, SourceState,
};
use crate::admit::Problem;
use crate::config::{Config, SourceName};
use crate::monitor::Statistics;
use crate::routes::ObservedDistance;

/// The agent's end of the channel to a source that runs.
#[derive(Debug)]
struct RunningSource {
    /// Its settings when it was started; it is started anew when they change.
    spec: SourceSpec,
    state: watch::Receiver<SourceState>,
    applied: watch::Sender<Option<AppliedObjects>>,
    /// The fault that was logged last.
    logged: Option<String>,
    _stop: DropGuard,
}

/// The sources that run, each as a task of its own.
#[derive(Debug, Default)]
pub struct SourceSet {
    running: BTreeMap<SourceName, RunningSource>,
    tasks: JoinSet<()>,
    wake: Arc<Notify>,
    reports: watch::Sender<Option<Arc<MonitorReport>>>,
    statistics: watch::Sender<Option<Arc<Statistics>>>,
    routes: watch::Sender<Option<ObservedDistance>>,
    updates: watch::Sender<Option<UpdateStatus>>,
    candidates: CandidateQueue,
}

impl SourceSet {
    /// Runs the sources that the controllers of a configuration use, and ends all others. One whose
    /// settings did not change goes on. `collected` is what is known of them so far.
    pub fn follow(&mut self, config: &Config, collected: &CollectedObjects) {
        let wanted: BTreeMap<SourceName, SourceSpec> = config
            .controllers
            .sources()
            .filter_map(|name| Some((name, SourceSpec::of(config, name)?)))
            .collect();
        self.running
            .retain(|name, source| wanted.get(name) == Some(&source.spec));
        for (name, spec) in wanted {
            if !self.running.contains_key(&name) {
                let link = self.attach(name, spec.clone(), collected.of(name));
                spec.start(link, &mut self.tasks);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn attach(
        &mut self,
        name: SourceName,
        spec: SourceSpec,
        initial: Option<&Arc<SourceObjects>>,
    ) -> SourceLink {
        let (state, own_state) = watch::channel(SourceState::default());
        let (own_applied, applied) = watch::channel(None);
        let stop = CancellationToken::new();
        let source = RunningSource {
            spec,
            state: own_state,
            applied: own_applied,
            logged: None,
            _stop: stop.clone().drop_guard(),
        };
        self.running.insert(name, source);
        SourceLink {
            state,
            wake: Arc::clone(&self.wake),
            applied,
            initial: initial.map(Arc::clone).unwrap_or_default(),
            reports: self.reports.subscribe(),
            statistics: self.statistics.subscribe(),
            routes: self.routes.subscribe(),
            updates: self.updates.subscribe(),
            candidates: CandidateSender {
                source: name,
                questions: self.candidates.sender.clone(),
                wake: Arc::clone(&self.wake),
            },
            stop,
        }
    }

    /// Waits until a source has delivered something, or failed, since the last call.
    pub async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Takes the newest snapshots, and logs faults that are new. Returns `true` if a snapshot
    /// changed.
    pub fn collect(&mut self, into: &mut CollectedObjects) -> bool {
        let mut is_changed = false;
        for (name, source) in &mut self.running {
            let state = source.state.borrow_and_update().clone();
            if let Some(objects) = state.objects {
                is_changed |= into.replace(*name, objects);
            }
            if source.logged != state.fault {
                match &state.fault {
                    Some(reason) => warn!(
                        source = name.name(),
                        reason, "a source does not answer; its rules stay as they are"
                    ),
                    None => info!(source = name.name(), "a source answers again"),
                }
                source.logged = state.fault;
            }
        }
        is_changed
    }

    /// Tells every source what became of its snapshot.
    pub fn report(
        &self,
        collected: &CollectedObjects,
        problems: &[Problem],
        refusal: Option<&str>,
    ) {
        let problems = Arc::new(problems.to_vec());
        for (name, source) in &self.running {
            if let Some(objects) = collected.of(*name) {
                source.applied.send_replace(Some(AppliedObjects {
                    objects: Arc::<SourceObjects>::clone(objects),
                    problems: Arc::clone(&problems),
                    refusal: refusal.map(str::to_owned),
                }));
            }
        }
    }

    /// Hands a reading of the kernel's counters to the sources that pass it on.
    pub fn report_statistics(&self, statistics: Arc<Statistics>) {
        self.statistics.send_replace(Some(statistics));
    }

    /// Hands what the routing daemon has to the sources that pass it on.
    pub fn report_routes(&self, observed: Option<ObservedDistance>) {
        self.routes.send_if_modified(|known| {
            let is_new = *known != observed;
            *known = observed;
            is_new
        });
    }

    /// Hands the state of self-update to the sources that pass it on.
    pub fn report_update(&self, status: UpdateStatus) {
        self.updates.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&status);
            *known = Some(status);
            is_new
        });
    }

    /// The next question about a snapshot. `None` if none waits.
    pub fn next_candidate(&mut self) -> Option<CandidateQuestion> {
        self.candidates.receiver.try_recv().ok()
    }

    /// Hands a report of the firewall's counters to the sources that keep one.
    pub fn report_monitor(&self, report: MonitorReport) {
        self.reports.send_replace(Some(Arc::new(report)));
    }

    /// The reason why a source does not answer now. `None` if it does, was not asked yet, or runs no
    /// task.
    #[must_use]
    pub fn fault(&self, source: SourceName) -> Option<String> {
        self.running.get(&source)?.state.borrow().fault.clone()
    }

    /// `true` if a source has answered, and still does. One that runs no task always does.
    #[must_use]
    pub fn is_connected(&self, source: SourceName) -> bool {
        self.running.get(&source).is_none_or(|running| {
            let state = running.state.borrow();
            state.objects.is_some() && state.fault.is_none()
        })
    }
}
