//! Decides what the running agent does about its program.

use std::time::Duration;

use base_runtime::Backoff;
use proto_release::ReleaseVersion;
use proto_types::Digest;

use super::facts::{UpdateFacts, UpdateStep};
use super::phase::{ProgramRole, UpdatePhase};
use super::record::UpdateRecord;
use super::release_id::ReleaseId;
use super::wanted::WantedRelease;

/// Time for which a new program does its work and hears its source before it counts as good.
pub const CONFIRM_AFTER: Duration = Duration::from_secs(10);
/// Time within which a new program confirms itself after a start.
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(600);
/// Pause before a release that was not confirmed is tried again.
const RETRY_TRIAL: Duration = Duration::from_secs(900);
/// Pauses after a release that could not be fetched or was refused.
const RETRY: Backoff = Backoff::new(Duration::from_secs(30), Duration::from_secs(3600));

/// A release that is fetched, or will be.
#[derive(Clone, Debug)]
struct FetchTarget {
    wanted: WantedRelease,
    /// Time since the start of the agent before which it is not fetched.
    not_before: Duration,
    failures: u32,
    is_running: bool,
}

/// The state of self-update while the agent runs. It reads no clock and does nothing itself.
#[derive(Clone, Debug)]
pub struct UpdateMachine {
    role: ProgramRole,
    running: ReleaseId,
    /// Since when the agent is healthy. `None` if it is not.
    healthy_since: Option<Duration>,
    target: Option<FetchTarget>,
}

impl UpdateMachine {
    /// The state of a program that has just started.
    #[must_use]
    pub fn new(role: ProgramRole, running: ReleaseId) -> Self {
        Self {
            role,
            running,
            healthy_since: None,
            target: None,
        }
    }

    /// The role of the program that runs.
    #[must_use]
    pub fn role(&self) -> ProgramRole {
        self.role
    }

    /// The version of the program that runs.
    #[must_use]
    pub fn running(&self) -> &ReleaseVersion {
        &self.running.version
    }

    /// The release of the program that runs.
    #[must_use]
    pub fn release(&self) -> &ReleaseId {
        &self.running
    }

    /// Takes note of the signed head of the release whose program runs: a fetch has found out.
    pub(super) fn recognize(&mut self, head_digest: Option<Digest>) {
        self.running.head_digest = head_digest;
        self.target = None;
    }

    /// Decides the next step. Call it often.
    pub fn step(&mut self, facts: &UpdateFacts<'_>, record: &UpdateRecord) -> UpdateStep {
        self.healthy_since = match self.healthy_since {
            _ if !facts.is_healthy => None,
            None => Some(facts.now),
            since => since,
        };
        if self.role == ProgramRole::Trial {
            return self.trial_step(facts);
        }
        match self.wanted_phase(facts, record) {
            Some(phase) => {
                self.target = None;
                UpdateStep::Wait(phase)
            }
            None => self.fetch_step(facts, record),
        }
    }

    fn trial_step(&self, facts: &UpdateFacts<'_>) -> UpdateStep {
        let now = facts.now;
        let healthy_for = self.healthy_since.map(|since| now.saturating_sub(since));
        if healthy_for.is_some_and(|time| time >= CONFIRM_AFTER) {
            return UpdateStep::Confirm;
        }
        if now >= CONFIRM_WITHIN {
            let seconds = CONFIRM_WITHIN.as_secs();
            return UpdateStep::GiveUp(format!(
                "version {}: {} within {seconds} s",
                self.running.version, facts.unhealthy
            ));
        }
        UpdateStep::Wait(UpdatePhase::Trial)
    }

    /// The phase in which no release is fetched. `None` if the wanted one is.
    fn wanted_phase(&self, facts: &UpdateFacts<'_>, record: &UpdateRecord) -> Option<UpdatePhase> {
        if self.role == ProgramRole::Stray || !facts.is_enabled {
            return Some(UpdatePhase::Off);
        }
        let Some(wanted) = facts.wanted.map(WantedRelease::release) else {
            return Some(UpdatePhase::NothingWanted);
        };
        if self.running.satisfies(&wanted) {
            return Some(UpdatePhase::Current);
        }
        record.refusal(&wanted).map(|_| UpdatePhase::Refused)
    }

    fn fetch_step(&mut self, facts: &UpdateFacts<'_>, record: &UpdateRecord) -> UpdateStep {
        let Some(wanted) = facts.wanted else {
            return UpdateStep::Wait(UpdatePhase::NothingWanted);
        };
        let target = match &mut self.target {
            Some(target) if target.wanted == *wanted => target,
            other => {
                let pause = match record.attempts(&wanted.release()) {
                    0 => facts.delay,
                    _ => RETRY_TRIAL,
                };
                other.insert(FetchTarget {
                    wanted: wanted.clone(),
                    not_before: facts.now + pause,
                    failures: 0,
                    is_running: false,
                })
            }
        };
        if target.is_running {
            return UpdateStep::Wait(UpdatePhase::Fetching);
        }
        if facts.now < target.not_before {
            return UpdateStep::Wait(match target.failures {
                0 => UpdatePhase::Scheduled,
                _ => UpdatePhase::Failed,
            });
        }
        // A new program must be judged against one that works.
        if self.healthy_since.is_none() {
            return UpdateStep::Wait(UpdatePhase::Unhealthy);
        }
        target.is_running = true;
        UpdateStep::Fetch(target.wanted.clone())
    }

    /// Takes note of a fetch that failed.
    pub fn fetch_failed(&mut self, now: Duration) {
        if let Some(target) = &mut self.target {
            target.not_before = now + RETRY.step(target.failures);
            target.failures = target.failures.saturating_add(1);
            target.is_running = false;
        }
    }

    /// Takes note of a fetch that was ended because the rules for it have changed. It begins again.
    pub fn fetch_ended(&mut self) {
        if let Some(target) = &mut self.target {
            target.is_running = false;
        }
    }

    /// The release that is being fetched. `None` if none is.
    #[must_use]
    pub fn fetching(&self) -> Option<&WantedRelease> {
        let target = self.target.as_ref().filter(|target| target.is_running);
        target.map(|target| &target.wanted)
    }

    /// `true` if a fetch that has ended is of the release that is being fetched, and that is wanted at this
    /// moment: the source may have named another one, or none, since the last step.
    #[must_use]
    pub fn takes(&self, fetched: &WantedRelease, wanted: Option<&WantedRelease>) -> bool {
        self.fetching() == Some(fetched) && wanted == Some(fetched)
    }

    /// Tries a failed release again at once.
    pub fn retry_now(&mut self) {
        self.target = self.target.take().filter(|target| target.is_running);
    }
}
