//! Another back-end with faults, which one seed decides. For tests.
//!
//! Steps fail, stall for a bounded time, are done and answered with an error, or are answered
//! without being done. Changes are lost later, and observations are stale. The same seed and the
//! same calls have the same faults.
//!
//! Faults that no agent could survive do not happen: a step that was cut has no later effect, no two
//! observations in a row are stale, a stale one repeats the answer before it, and a change is lost
//! just before an observation that shows it.

mod dice;
mod faults;
mod inverse;

use std::collections::{BTreeSet, VecDeque};

use dice::Dice;
pub use faults::FaultRates;
use faults::StepFault;
use inverse::inverse;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::sleep;

use crate::back_end::{Nos, NosError};
use crate::capability::Capability;
use crate::frr::announced::AnnouncedPrefix;
use crate::lldp::Neighbours;
use crate::model::PortName;
use crate::observation::Observation;
use crate::problem::SwitchObject;
use crate::step::Step;
use crate::telemetry::Telemetry;

/// Changes that can still be lost. Older ones stay for good.
const LOSABLE_MAX: usize = 8;

/// A back-end with faults.
#[derive(Debug)]
pub struct Chaos<N> {
    inner: N,
    state: Mutex<ChaosState>,
}

#[derive(Debug)]
struct ChaosState {
    dice: Dice,
    rates: FaultRates,
    /// Objects whose steps all fail.
    refused: BTreeSet<SwitchObject>,
    /// Steps back, oldest first.
    losable: VecDeque<Step>,
    /// The last answer to an observation, and whether it was stale.
    last: Option<(Observation, bool)>,
}

impl<N: Nos> Chaos<N> {
    /// A back-end whose faults this seed decides.
    #[must_use]
    pub fn new(inner: N, seed: u64, rates: FaultRates) -> Self {
        let state = ChaosState {
            dice: Dice::new(seed),
            rates,
            refused: BTreeSet::new(),
            losable: VecDeque::new(),
            last: None,
        };
        Self {
            inner,
            state: Mutex::new(state),
        }
    }

    /// Ends all faults, also those of refused objects.
    pub fn calm(&self) {
        let mut state = self.lock();
        state.rates = FaultRates::NONE;
        state.refused.clear();
    }

    /// Refuses every step of an object from now on.
    pub fn refuse(&self, object: SwitchObject) {
        self.lock().refused.insert(object);
    }

    /// The back-end without faults.
    pub fn inner(&self) -> &N {
        &self.inner
    }

    fn lock(&self) -> MutexGuard<'_, ChaosState> {
        self.state.lock()
    }

    /// Does a step and notes the step back.
    async fn carry_out(&self, step: &Step) -> Result<(), NosError> {
        let before = self.inner.observe().await?.model;
        self.inner.apply(step).await?;
        let mut state = self.lock();
        if let Some(back) = inverse(step, &before) {
            state.losable.push_back(back);
        }
        if state.losable.len() > LOSABLE_MAX {
            state.losable.pop_front();
        }
        Ok(())
    }
}

impl ChaosState {
    fn step_fault(&mut self, step: &Step) -> Option<StepFault> {
        if self.refused.contains(&step.object()) {
            return Some(StepFault::Fails);
        }
        let FaultRates {
            fails,
            stalls,
            stall,
            unanswered,
            ignored,
            ..
        } = self.rates;
        let stalls_after = self.dice.percent(50);
        let faults = [
            (fails, StepFault::Fails),
            (
                stalls,
                if stalls_after {
                    StepFault::StallsAfter(stall)
                } else {
                    StepFault::StallsBefore(stall)
                },
            ),
            (unanswered, StepFault::Unanswered),
            (ignored, StepFault::Ignored),
        ];
        let mut faults = faults.into_iter();
        faults.find_map(|(rate, fault)| self.dice.percent(rate).then_some(fault))
    }

    /// The stale answer to an observation. `None` if it is a true one.
    fn stale(&mut self) -> Option<Observation> {
        let is_due = self.dice.percent(self.rates.stale);
        let (last, was_stale) = self.last.as_mut()?;
        if *was_stale || !is_due {
            return None;
        }
        *was_stale = true;
        Some(last.clone())
    }

    /// A change to lose now.
    fn lost(&mut self) -> Option<Step> {
        if !self.dice.percent(self.rates.lost) {
            return None;
        }
        let index = self.dice.below(self.losable.len())?;
        self.losable.remove(index)
    }
}

impl<N: Nos> Nos for Chaos<N> {
    fn vendor(&self) -> &'static str {
        self.inner.vendor()
    }

    fn version(&self) -> String {
        self.inner.version()
    }

    fn capabilities(&self) -> &'static [Capability] {
        self.inner.capabilities()
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        let stale = self.lock().stale();
        if let Some(stale) = stale {
            return Ok(stale);
        }
        let lost = self.lock().lost();
        if let Some(back) = lost
            && let Err(error) = self.inner.apply(&back).await
        {
            // The change is no longer there to be lost.
            tracing::debug!(%error, ?back, "cannot lose a change");
        }
        let seen = self.inner.observe().await?;
        self.lock().last = Some((seen.clone(), false));
        Ok(seen)
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        let fault = self.lock().step_fault(step);
        let injected = || Err(NosError::Injected(format!("{step:?}")));
        match fault {
            None => self.carry_out(step).await,
            Some(StepFault::Fails) => injected(),
            Some(StepFault::Ignored) => Ok(()),
            Some(StepFault::Unanswered) => {
                self.carry_out(step).await?;
                injected()
            }
            Some(StepFault::StallsBefore(stall)) => {
                sleep(stall).await;
                self.carry_out(step).await
            }
            Some(StepFault::StallsAfter(stall)) => {
                self.carry_out(step).await?;
                sleep(stall).await;
                Ok(())
            }
        }
    }

    async fn changed(&self) {
        self.inner.changed().await;
    }

    async fn announced(&self, port: &PortName) -> Result<Vec<AnnouncedPrefix>, NosError> {
        self.inner.announced(port).await
    }

    async fn telemetry(&self) -> Result<Telemetry, NosError> {
        self.inner.telemetry().await
    }

    fn neighbours(&self) -> Option<Neighbours> {
        self.inner.neighbours()
    }
}
