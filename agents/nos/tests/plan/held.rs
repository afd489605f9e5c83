//! Plans some of whose steps fail: those that depend on them are held, and nobody meets.

use std::collections::BTreeSet;

use agents_nos::{
    Capability, Dependencies, Schedule, Step, SwitchModel, fit, interpret, is_in_effect, plan,
    schedule,
};
use proptest::prelude::*;

use crate::invariants::violations;
use crate::random::states;

const ALL: &[Capability] = Capability::ALL;

/// Applies a plan in rounds as a pass does. The steps whose number in the first plan is in `fail`
/// fail. Returns those and the held ones.
fn pass(
    state: &mut SwitchModel,
    desired: &SwitchModel,
    fail: &BTreeSet<usize>,
) -> Result<Vec<Step>, TestCaseError> {
    let begin = state.clone();
    let first = plan(state, desired, ALL).steps;
    let failing: Vec<Step> = first
        .into_iter()
        .enumerate()
        .filter(|(number, _)| fail.contains(number))
        .map(|(_, step)| step)
        .collect();
    let mut held_last = Vec::new();
    for _ in 0..64 {
        let target = fit(state, desired, ALL).model;
        let steps = plan(state, desired, ALL).steps;
        let observed = state.clone();
        let dependencies = Dependencies {
            observed: &observed,
            target: &target,
        };
        let Schedule { now, held } = schedule(steps, |s| failing.contains(s), dependencies);
        held_last = held.into_iter().map(|held| held.step).collect();
        if now.is_empty() {
            break;
        }
        for step in now {
            let before = violations(state, &begin, &target);
            prop_assert!(!is_in_effect(&step, state), "{step:?} is planned in vain");
            let done = interpret(state, &step);
            prop_assert!(done.is_ok(), "{step:?}: {done:?} with {failing:?} failing");
            prop_assert!(is_in_effect(&step, state), "{step:?} is not recognised");
            let now = violations(state, &begin, &target);
            let new: Vec<_> = now.difference(&before).collect();
            prop_assert!(
                new.is_empty(),
                "{step:?} leads to {new:?}, {failing:?} failing"
            );
        }
    }
    Ok([failing, held_last].concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_failed_step_holds_what_depends_on_it(
        (from, to) in states(), fail in prop::collection::btree_set(0_usize..24, 0..5)
    ) {
        let mut state = from.clone();
        let undone = pass(&mut state, &to, &fail)?;
        // A failed step may be needed no more: the repair of a segment cuts its tunnel ends, too.
        for step in plan(&state, &to, ALL).steps {
            prop_assert!(undone.contains(&step), "{step:?} is forgotten; {undone:?}");
        }
        // Once nothing fails any more, the rest is made up for.
        pass(&mut state, &to, &BTreeSet::new())?;
        prop_assert_eq!(plan(&state, &to, ALL).steps, vec![]);
    }
}
