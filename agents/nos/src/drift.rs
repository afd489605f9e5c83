//! Changes of a switch that neither control nor the agent made.

use crate::capability::Capability;
use crate::dependency::Dependencies;
use crate::describe::describe;
use crate::fit::{Fitted, fit};
use crate::model::SwitchModel;
use crate::plan::steps_to;
use crate::problem::SwitchObject;
use crate::safety::keeps_tenants_apart;
use crate::step::Step;

/// An object that somebody changed by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The object.
    pub object: SwitchObject,
    /// Its observed state in words.
    pub seen: String,
    /// Its desired state in words.
    pub desired: String,
    /// `true` if tenants could meet until it is healed ([`keeps_tenants_apart`]).
    pub is_unsafe: bool,
}

/// Finds the objects that somebody changed since the last pass: those that need a step which the
/// last pass did not leave behind.
///
/// `desired` is the state that the last pass was for, so that a change by control at the same time
/// is no drift. `left` are the steps that the last pass did not get into effect.
#[must_use]
pub fn find_drift(
    observed: &SwitchModel,
    desired: &SwitchModel,
    left: &[Step],
    capabilities: &[Capability],
) -> Vec<Drift> {
    let Fitted { model, .. } = fit(observed, desired, capabilities);
    let mut found: Vec<Drift> = Vec::new();
    let steps = steps_to(observed, &model);
    for step in steps.iter().filter(|step| !left.contains(step)) {
        let object = step.object();
        let is_unsafe = keeps_tenants_apart(step, observed);
        if let Some(known) = found.iter_mut().find(|known| known.object == object) {
            known.is_unsafe |= is_unsafe;
            continue;
        }
        found.push(Drift {
            seen: describe(&object, observed),
            desired: describe(&object, &model),
            object,
            is_unsafe,
        });
    }
    found
}

/// The steps of a plan to withhold, so that objects with drift stay as somebody made them.
///
/// Not withheld are steps that other steps of the plan need: what control changes and what keeps
/// tenants apart goes on, and takes with it what it depends on. An object is healed whole or not at
/// all.
#[must_use]
pub fn steps_to_hold(
    observed: &SwitchModel,
    desired: &SwitchModel,
    is_held: impl Fn(&SwitchObject) -> bool,
    capabilities: &[Capability],
) -> Vec<Step> {
    let Fitted { model, .. } = fit(observed, desired, capabilities);
    let steps = steps_to(observed, &model);
    let dependencies = Dependencies {
        observed,
        target: &model,
    };
    let (mut held, mut runs): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|step| is_held(&step.object()));
    loop {
        let goes = |step: &&Step| {
            let object = step.object();
            keeps_tenants_apart(step, observed)
                || runs.iter().any(|run| run.object() == object)
                || runs.iter().any(|run| dependencies.holds(step, run))
        };
        let (more, left): (Vec<&Step>, Vec<&Step>) = held.into_iter().partition(goes);
        held = left;
        if more.is_empty() {
            return held.into_iter().cloned().collect();
        }
        runs.extend(more);
    }
}
