//! When failed steps are tried again.

use std::collections::BTreeMap;
use std::time::Duration;

use agents_nos::{Failure, Passed, Step, SwitchObject};
use base_runtime::Backoff;
use tokio::time::Instant;

/// Pauses after failures of one object.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));

/// The failures of single objects. Bounded by the objects of the switch.
#[derive(Debug, Default)]
pub(crate) struct Retries(BTreeMap<SwitchObject, Retry>);

/// An object whose steps fail.
#[derive(Debug)]
pub(crate) struct Retry {
    /// Steps that failed at the last attempt.
    steps: Vec<Step>,
    /// The first of their reasons.
    pub(crate) failure: Failure,
    /// Attempts in a row.
    pub(crate) attempts: u32,
    /// When the next attempt is due.
    due: Instant,
}

impl Retries {
    /// Steps that are not to be tried yet. Other steps of the same objects are: control has changed
    /// its mind since.
    pub(crate) fn pausing(&self, now: Instant) -> Vec<Step> {
        let pausing = self.0.values().filter(|retry| retry.due > now);
        pausing.flat_map(|retry| retry.steps.clone()).collect()
    }

    /// Takes the failures of a pass. Returns the objects that failed in it.
    pub(crate) fn take(&mut self, passed: &Passed, now: Instant) -> Vec<SwitchObject> {
        let mut failed: BTreeMap<SwitchObject, (Vec<Step>, Failure)> = BTreeMap::new();
        for of in &passed.failed {
            let new = || (Vec::new(), of.failure.clone());
            let (steps, _) = failed.entry(of.step.object()).or_insert_with(new);
            steps.push(of.step.clone());
        }
        self.0.retain(|object, retry| {
            let is_left = retry.steps.iter().any(|step| passed.rest.contains(step));
            is_left || failed.contains_key(object)
        });
        let objects = failed.keys().cloned().collect();
        for (object, (steps, failure)) in failed {
            let attempts = self.0.get(&object).map_or(0, |retry| retry.attempts);
            let attempts = attempts.saturating_add(1);
            let retry = Retry {
                steps,
                failure,
                attempts,
                due: now + BACKOFF.pause(attempts),
            };
            self.0.insert(object, retry);
        }
        objects
    }

    /// When the next attempt is due. `None` if nothing fails.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.values().map(|retry| retry.due).min()
    }

    /// The failing objects.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SwitchObject, &Retry)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use agents_nos::model::PortName;
    use agents_nos::{FailedStep, Observation};

    use super::*;

    fn step(up: bool) -> Step {
        let port = PortName::new("swp1").unwrap();
        Step::SetAdmin { port, up }
    }

    fn failing(steps: &[Step]) -> Passed {
        let failed = steps.iter().map(|step| FailedStep {
            step: step.clone(),
            failure: Failure::Unverified,
        });
        Passed {
            observation: Observation::default(),
            problems: Vec::new(),
            done: Vec::new(),
            failed: failed.collect(),
            held: Vec::new(),
            untried: Vec::new(),
            rest: steps.to_vec(),
        }
    }

    #[tokio::test]
    async fn a_failed_step_pauses_longer_each_time_and_another_one_does_not() {
        let (mut retries, mut now) = (Retries::default(), Instant::now());
        for attempt in 1..8 {
            assert_eq!(retries.take(&failing(&[step(true)]), now).len(), 1);
            assert_eq!(retries.pausing(now), [step(true)]);
            assert_eq!(retries.iter().next().unwrap().1.attempts, attempt);
            let due = retries.due().unwrap();
            let least = Duration::from_millis(125 << (attempt - 1)).min(Duration::from_secs(5));
            assert!(
                due - now >= least && due - now <= Duration::from_secs(10),
                "{attempt}"
            );
            now = due;
            assert_eq!(retries.pausing(now), []);
        }
        // Not tried in a pass: it stays.
        let mut idle = failing(&[]);
        idle.rest = vec![step(true)];
        assert!(retries.take(&idle, now).is_empty());
        assert_eq!(retries.iter().count(), 1);
        // No longer needed.
        idle.rest = vec![step(false)];
        assert!(retries.take(&idle, now).is_empty());
        assert_eq!(retries.due(), None);
    }
}
