use agents_nos::model::Policies;
use agents_nos::{Capability, Plan, Step, SwitchModel, fit, interpret, plan};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::invariants::violations;
use crate::lower_bound::needed;
use crate::random::{observable, states};

const ALL: &[Capability] = Capability::ALL;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    }
}

fn apply(state: &mut SwitchModel, steps: &[Step]) -> Result<(), TestCaseError> {
    for step in steps {
        let done = interpret(state, step);
        prop_assert!(done.is_ok(), "{step:?}: {done:?}");
    }
    Ok(())
}

/// The part of a state whose names are ours.
fn ours(state: &SwitchModel) -> SwitchModel {
    let mut state = state.clone();
    state.vrfs.retain(|name, _| name.is_managed());
    let policies = &mut state.policies;
    policies.prefix_lists.retain(|id, _| id.name.is_managed());
    policies.as_path_lists.retain(|name, _| name.is_managed());
    policies.route_maps.retain(|name, _| name.is_managed());
    if let Some(bgp) = &mut state.bgp {
        bgp.vrfs.retain(|name, _| name.is_managed());
    }
    state
}

/// The part of a state that is somebody else's.
fn of_others(state: &SwitchModel) -> SwitchModel {
    let mut vrfs = state.vrfs.clone();
    vrfs.retain(|name, _| !name.is_managed());
    let mut policies: Policies = state.policies.clone();
    policies.prefix_lists.retain(|id, _| !id.name.is_managed());
    policies.as_path_lists.retain(|name, _| !name.is_managed());
    policies.route_maps.retain(|name, _| !name.is_managed());
    SwitchModel {
        vrfs,
        policies,
        ..SwitchModel::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_plan_ends_at_the_desired_state((from, to) in states()) {
        let Plan { steps, problems } = plan(&from, &to, ALL);
        let mut state = from.clone();
        apply(&mut state, &steps)?;
        let fitted = fit(&from, &to, ALL);
        prop_assert_eq!(&state, &fitted.model);
        prop_assert_eq!(&problems, &fitted.problems);
        let again = plan(&state, &to, ALL);
        prop_assert_eq!(again.steps, vec![]);
        prop_assert_eq!(again.problems, problems);
        prop_assert_eq!(of_others(&state), of_others(&from));
    }

    /// The desired state is one that the switch can have: nothing of it is left out.
    #[test]
    fn a_state_without_problems_is_reached_exactly((from, raw) in states()) {
        // What others still use stays; without others there is nothing to keep.
        let from = observable(ours(&from));
        let to = ours(&fit(&from, &raw, ALL).model);
        let made = plan(&from, &to, ALL);
        prop_assert_eq!(&made.problems, &vec![]);
        let mut state = from;
        apply(&mut state, &made.steps)?;
        prop_assert_eq!(state, to);
    }

    #[test]
    fn no_step_is_superfluous((from, to) in states()) {
        let steps = plan(&from, &to, ALL).steps;
        let target = fit(&from, &to, ALL).model;
        prop_assert_eq!(steps.len(), needed(&from, &target), "{:?}", steps);
    }

    #[test]
    fn no_step_breaks_an_invariant((from, to) in states()) {
        let target = fit(&from, &to, ALL).model;
        let mut state = from.clone();
        let mut before = violations(&state, &from, &target);
        for step in plan(&from, &to, ALL).steps {
            prop_assert_eq!(interpret(&mut state, &step), Ok(()));
            let now = violations(&state, &from, &target);
            let new: Vec<_> = now.difference(&before).collect();
            prop_assert!(new.is_empty(), "{:?} leads to {:?}", step, new);
            before = now;
        }
    }

    #[test]
    fn an_interrupted_plan_ends_at_the_same_state(
        (from, to) in states(), at in any::<Index>(), twice in any::<bool>()
    ) {
        let steps = plan(&from, &to, ALL).steps;
        let (first, rest) = steps.split_at(at.index(steps.len() + 1));
        let mut state = from.clone();
        apply(&mut state, first)?;
        // A step whose answer was lost is done again.
        if twice {
            apply(&mut state, first.last().map(std::slice::from_ref).unwrap_or_default())?;
        }
        let resumed = plan(&state, &to, ALL).steps;
        prop_assert_eq!(resumed.len(), rest.len());
        apply(&mut state, &resumed)?;
        prop_assert_eq!(state, fit(&from, &to, ALL).model);
    }

    #[test]
    fn a_back_end_gets_only_steps_of_its_capabilities((from, to) in states()) {
        let from = SwitchModel {
            vrfs: [].into(),
            policies: Policies::default(),
            bgp: None,
            ..from
        };
        for step in plan(&from, &to, &[]).steps {
            let is_segment = matches!(
                step,
                Step::SetAdmin { .. } | Step::SetMtu { .. } | Step::Quarantine { .. }
                    | Step::EnsureSegment { vlan: None, .. } | Step::RemoveSegment { .. }
                    | Step::AddRemote { .. } | Step::RemoveRemote { .. }
                    | Step::SetGateway { gateway: None, .. }
            );
            let enters = match &step {
                Step::Enter { place, .. } => {
                    matches!(place, agents_nos::Membership::Segment { is_private: false, .. })
                }
                _ => false,
            };
            prop_assert!(is_segment || enters, "{:?}", step);
        }
    }

    #[test]
    fn the_order_of_observing_does_not_matter((from, to) in states()) {
        let reversed = SwitchModel {
            ports: from.ports.clone().into_iter().rev().collect(),
            segments: from.segments.clone().into_iter().rev().collect(),
            vrfs: from.vrfs.clone().into_iter().rev().collect(),
            policies: Policies {
                prefix_lists: from.policies.prefix_lists.clone().into_iter().rev().collect(),
                as_path_lists: from.policies.as_path_lists.clone().into_iter().rev().collect(),
                route_maps: from.policies.route_maps.clone().into_iter().rev().collect(),
            },
            bgp: from.bgp.clone().map(|mut bgp| {
                bgp.vrfs = bgp.vrfs.into_iter().rev().collect();
                bgp.underlay = bgp.underlay.into_iter().rev().collect();
                bgp
            }),
            packet_filter: from.packet_filter.clone(),
            ..from
        };
        prop_assert_eq!(&reversed, &from);
        prop_assert_eq!(plan(&reversed, &to, ALL), plan(&from, &to, ALL));
    }
}

/// The random states lead to steps of every kind.
#[test]
fn random_plans_have_every_kind_of_step() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..config().cases {
        let (from, to) = states().new_tree(&mut runner).unwrap().current();
        for step in plan(&from, &to, ALL).steps {
            let text = format!("{step:?}");
            let kind = text.split([' ', '{']).next().unwrap();
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
    }
    println!("{kinds:?}");
    assert_eq!(kinds.len(), 30, "{kinds:?}");
    assert!(kinds.values().all(|count| *count >= 10), "{kinds:?}");
}
