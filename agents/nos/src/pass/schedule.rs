use std::collections::VecDeque;

use crate::dependency::Dependencies;
use crate::problem::SwitchObject;
use crate::step::Step;

/// A step that waits for another one, which is not in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldStep {
    /// The step.
    pub step: Step,
    /// The object of the failed or withheld step that it waits for, perhaps through others.
    pub waits_for: SwitchObject,
}

/// The steps of a plan that can be applied now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Steps that depend on nothing that is not in effect yet, in the order of the plan.
    pub now: Vec<Step>,
    /// Steps that wait for one that will not be in effect.
    pub held: Vec<HeldStep>,
}

/// Divides a plan into the steps to apply now, those that need an observation first, and those that
/// are held because an `undone` step, failed or withheld, is in their way.
///
/// A step waits for an observation if it depends on a step of this plan: so every step is verified
/// before one that relies on it. A removal waits for the steps before it, because a leftover must
/// not delay a tenant's port.
#[must_use]
pub fn schedule(
    steps: Vec<Step>,
    undone: impl Fn(&Step) -> bool,
    dependencies: Dependencies<'_>,
) -> Schedule {
    let mut out = Schedule::default();
    let mut blocked: Vec<(Step, SwitchObject)> = Vec::new();
    let mut later = VecDeque::new();
    for step in steps {
        if undone(&step) {
            let object = step.object();
            blocked.push((step, object));
            continue;
        }
        let blocker = blocked
            .iter()
            .find(|(blocked, _)| dependencies.holds(blocked, &step));
        if let Some((_, waits_for)) = blocker {
            let waits_for = waits_for.clone();
            blocked.push((step.clone(), waits_for.clone()));
            out.held.push(HeldStep { step, waits_for });
            continue;
        }
        let is_leftover = step.removes() && !later.is_empty();
        let mut waiting = out.now.iter().chain(&later);
        if is_leftover || waiting.any(|earlier| dependencies.holds(earlier, &step)) {
            later.push_back(step);
        } else {
            out.now.push(step);
        }
    }
    out
}
