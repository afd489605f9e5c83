//! The suite: a switch in any state comes to any other one, step by step.

use agents_nos::{
    Capability, Membership, Nos, Refusal, Step, StepError, SwitchModel, SwitchObject, fit,
    interpret, is_in_effect, plan,
};

use crate::states::{PORTS, port, segment, states, vni};

/// Attempts until a step has to be in effect. A back-end with faults needs some.
const ATTEMPTS_MAX: usize = 50;

/// Runs the suite on a fresh switch with the ports of [`PORTS`].
pub(crate) async fn run<S: Nos>(switch: &S) {
    let all: Vec<&str> = states().into_iter().map(|(name, _)| name).collect();
    run_between(switch, &all).await;
}

/// Runs the suite between the states of these names: a real FRR takes its time for each step.
pub(crate) async fn run_between<S: Nos>(switch: &S, names: &[&str]) {
    a_fresh_switch_is_observed(switch).await;
    let mut states = states();
    states.retain(|(name, _)| names.contains(name));
    assert_eq!(states.len(), names.len(), "unknown names");
    for (first, from) in states.clone() {
        for (second, to) in states.clone() {
            converge(switch, &from, first).await;
            converge(switch, &to, &format!("{first}, then {second}")).await;
        }
    }
    a_step_that_does_not_fit_changes_nothing(switch).await;
    a_port_without_an_order_is_quarantined(switch).await;
}

/// Observes twice: a back-end with faults may answer once with the observation before.
async fn look<S: Nos>(switch: &S) -> SwitchModel {
    switch.observe().await.unwrap();
    let seen = switch.observe().await.unwrap();
    let (ports, links) = (seen.model.ports.keys(), seen.links.keys());
    assert!(ports.eq(links), "each port has hardware");
    seen.model
}

async fn a_fresh_switch_is_observed<S: Nos>(switch: &S) {
    let seen = look(switch).await;
    let ports: Vec<&str> = seen.ports.keys().map(AsRef::as_ref).collect();
    assert_eq!(ports, PORTS);
    assert!(!switch.vendor().is_empty());
}

/// Applies a step until it is in effect, and once more. What is observed is what the step means.
async fn apply<S: Nos>(switch: &S, step: &Step) {
    let before = look(switch).await;
    let mut expected = before.clone();
    interpret(&mut expected, step).unwrap();
    for _ in 0..ATTEMPTS_MAX {
        let applied = switch.apply(step).await;
        let seen = look(switch).await;
        if applied.is_ok() && is_in_effect(step, &seen) {
            break;
        }
        assert!(seen == before || seen == expected, "{step:?} is half done");
    }
    assert_eq!(look(switch).await, expected, "{step:?}");
    switch.apply(step).await.ok();
    assert_eq!(look(switch).await, expected, "{step:?} twice");
}

async fn converge<S: Nos>(switch: &S, desired: &SwitchModel, name: &str) {
    let capabilities = switch.capabilities();
    let todo = plan(&look(switch).await, desired, capabilities);
    for problem in &todo.problems {
        let lacks = |needed: &Capability| !capabilities.contains(needed);
        let excused = match &problem.refusal {
            Refusal::Unsupported(needed) => lacks(needed),
            // What is for a refused object is refused as well.
            Refusal::NoVrf(_) => lacks(&Capability::Vrfs),
            Refusal::NoSegment(_) => lacks(&Capability::Vlans),
            _ => false,
        };
        assert!(excused, "{name}: {problem}");
    }
    for step in &todo.steps {
        apply(switch, step).await;
    }
    let seen = look(switch).await;
    assert_eq!(plan(&seen, desired, capabilities).steps, [], "{name}");
    assert_eq!(seen, fit(&seen, desired, capabilities).model, "{name}");
    let wanted = desired.ports.iter();
    for (port, wanted) in wanted.filter(|_| todo.problems.is_empty()) {
        assert_eq!(seen.ports[port].membership, wanted.membership, "{name}");
    }
}

async fn a_step_that_does_not_fit_changes_nothing<S: Nos>(switch: &S) {
    let (_, two_segments) = states().swap_remove(1);
    converge(switch, &two_segments, "two segments").await;
    let before = look(switch).await;
    let enter = |name: &str, number| Step::Enter {
        port: port(name),
        place: segment(number),
    };
    let steps = [
        (
            enter("swp1", 77),
            StepError::Missing(SwitchObject::Segment(vni(77))),
        ),
        (
            enter("swp1", 11),
            StepError::NotQuarantined(SwitchObject::Port(port("swp1"))),
        ),
        (
            Step::RemoveSegment { vni: vni(10) },
            StepError::InUse(SwitchObject::Segment(vni(10))),
        ),
    ];
    for (step, refused) in steps {
        assert_eq!(interpret(&mut before.clone(), &step), Err(refused));
        // A back-end that ignores steps by chance answers without an error.
        switch.apply(&step).await.ok();
        assert_eq!(look(switch).await, before, "{step:?}");
    }
}

async fn a_port_without_an_order_is_quarantined<S: Nos>(switch: &S) {
    let (_, mut two_segments) = states().swap_remove(1);
    converge(switch, &two_segments, "two segments").await;
    two_segments.ports.remove(&port("swp2"));
    converge(switch, &two_segments, "without an order").await;
    let seen = look(switch).await;
    assert_eq!(seen.ports["swp2"].membership, Membership::Quarantine);
    assert_eq!(seen.ports["swp3"].membership, segment(11));
}
