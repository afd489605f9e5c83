//! Passes on a switch with faults: every seed ends in the desired state, what is not is told, and
//! no step of the agent lets two tenants meet.

use std::collections::BTreeSet;
use std::time::Duration;

use agents_nos::chaos::{Chaos, FaultRates};
use agents_nos::stub::Stub;
use agents_nos::{
    Capability, FailedStep, Failure, Limits, Membership, Nos, NosError, Observation, Passed, Step,
    SwitchModel, fit, observe, plan, run_pass,
};
use parking_lot::Mutex;
use proptest::prelude::*;

use crate::fixture::{Build, segment_place};
use crate::invariants::violations;
use crate::random::states;

const LIMITS: Limits = Limits {
    step: Duration::from_millis(2),
    observe: Duration::from_secs(10),
};

const RATES: FaultRates = FaultRates {
    fails: 8,
    stalls: 2,
    stall: Duration::from_millis(4),
    unanswered: 8,
    ignored: 8,
    lost: 10,
    stale: 15,
};

/// A switch with faults, and a check of each step that the agent takes. What chaos takes back is no
/// step of the agent, and is not checked.
struct Watched {
    chaos: Chaos<Stub>,
    desired: Mutex<SwitchModel>,
    /// The state when the agent observed last.
    observed: Mutex<SwitchModel>,
    /// The step that is not checked yet, and the state before it.
    step: Mutex<Option<(Step, SwitchModel)>>,
    /// Violations that steps have caused.
    found: Mutex<BTreeSet<String>>,
}

impl Watched {
    fn new(chaos: Chaos<Stub>) -> Self {
        Self {
            chaos,
            desired: Mutex::default(),
            observed: Mutex::default(),
            step: Mutex::default(),
            found: Mutex::default(),
        }
    }

    async fn state(&self) -> SwitchModel {
        self.chaos.inner().observe().await.unwrap().model
    }

    /// Checks the last step. Not at its end, because it may have been cut.
    async fn check(&self) {
        let Some((step, before)) = self.step.lock().take() else {
            return;
        };
        let observed = self.observed.lock().clone();
        let target = fit(&before, &self.desired.lock(), Capability::ALL).model;
        let known = violations(&before, &observed, &target);
        let now = violations(&self.state().await, &observed, &target);
        let new = now.difference(&known);
        let new = new.map(|violation| format!("{step:?}: {violation}"));
        self.found.lock().extend(new);
    }
}

impl Nos for Watched {
    fn vendor(&self) -> &'static str {
        self.chaos.vendor()
    }

    fn version(&self) -> String {
        self.chaos.version()
    }

    fn capabilities(&self) -> &'static [Capability] {
        self.chaos.capabilities()
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        self.check().await;
        let seen = self.chaos.observe().await?;
        let state = self.state().await;
        *self.observed.lock() = state;
        Ok(seen)
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        self.check().await;
        let before = self.state().await;
        *self.step.lock() = Some((step.clone(), before));
        self.chaos.apply(step).await
    }

    async fn changed(&self) {
        self.chaos.changed().await;
    }
}

/// One pass; what is left of it is told.
async fn pass<S: Nos>(switch: &S, desired: &SwitchModel) -> Result<Passed, TestCaseError> {
    let seen = observe(switch, LIMITS).await.unwrap();
    let passed = run_pass(switch, desired, seen, &[], LIMITS).await.unwrap();
    for step in &passed.rest {
        let is_failed = passed.failed.iter().any(|failed| failed.step == *step);
        let is_held = passed.held.iter().any(|held| held.step == *step);
        let is_untried = passed.untried.contains(step);
        prop_assert!(
            is_failed || is_held || is_untried,
            "{step:?} is left in silence"
        );
    }
    Ok(passed)
}

async fn survives(
    seed: u64,
    from: SwitchModel,
    desired: [SwitchModel; 2],
) -> Result<(), TestCaseError> {
    let stub = Stub::new(Observation {
        model: from,
        ..Observation::default()
    });
    let switch = Watched::new(Chaos::new(stub.clone(), seed, RATES));
    for desired in &desired {
        switch.desired.lock().clone_from(desired);
        for _ in 0..3 {
            pass(&switch, desired).await?;
        }
    }
    let [_, last] = desired;
    switch.chaos.calm();
    let mut passes = 0;
    while !plan(&stub.observe().await.unwrap().model, &last, Capability::ALL)
        .steps
        .is_empty()
    {
        passes += 1;
        prop_assert!(passes < 4, "does not end in the desired state");
        pass(&switch, &last).await?;
    }
    let found = switch.found.lock().clone();
    prop_assert!(found.is_empty(), "{found:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_seed_ends_in_the_desired_state((from, to) in states(), (_, other) in states(), seed: u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(survives(seed, from, [other, to]))?;
    }
}

/// Two tenants exchange their ports, which random states seldom do.
#[tokio::test]
async fn an_exchange_never_mixes_tenants() {
    let ports = |one, two| {
        let state = Build::default().segment(1, &[1]).segment(2, &[]);
        let state = state.port("p1", segment_place(one), true);
        let state = state.port("p2", segment_place(one), true);
        let state = state.port("p3", segment_place(two), true);
        state.port("p4", segment_place(two), false).0
    };
    for seed in 0..300 {
        let run = survives(seed, ports(1, 2), [ports(2, 1), ports(1, 2)]).await;
        run.unwrap_or_else(|failed| panic!("seed {seed}: {failed}"));
    }
}

/// A switch that answers nothing costs a pass three time limits, and each cut step has failed.
#[tokio::test]
async fn a_switch_that_hangs_is_left_alone_after_three_steps() {
    let ports = |place: fn(u32) -> Membership| {
        let state = Build::default();
        (1..=9_u32).fold(state, |state, number| {
            let state = state.segment(number, &[]);
            state.port(&format!("p{number}"), place(number), true)
        })
    };
    let stub = Stub::new(Observation {
        model: ports(|_| Membership::Quarantine).0,
        ..Observation::default()
    });
    let hangs = FaultRates {
        stalls: 100,
        stall: Duration::from_secs(3600),
        ..FaultRates::NONE
    };
    let switch = Chaos::new(stub, 1, hangs);
    let desired = ports(segment_place).0;
    let seen = observe(&switch, LIMITS).await.unwrap();
    let passed = run_pass(&switch, &desired, seen, &[], LIMITS)
        .await
        .unwrap();
    let is_cut = |failed: &FailedStep| failed.failure == Failure::Stalled(LIMITS.step);
    assert!(passed.failed.iter().all(is_cut), "{:?}", passed.failed);
    assert!(passed.done.len() + passed.failed.len() <= 3);
    assert!(passed.untried.len() >= 6, "nothing is forgotten");
    assert_eq!(
        passed.rest.len(),
        passed.failed.len() + passed.untried.len()
    );
}
