//! Step by step: the switch is where the meaning of each step says.

use agents_nos::{Membership, Nos, SwitchModel, interpret, plan};

use super::daemons::Switch;
use super::hosts::inside;
use super::models::{enter, machine, place, tenant, underlay};
use super::switch::{is_available, open};

/// Applies a plan step by step, each step twice, and compares the switch after each.
fn walk(switch: &Switch, desired: &SwitchModel) {
    let (name, desired) = (switch.name.clone(), desired.clone());
    inside(&switch.name, async move || {
        let back_end = open(&name);
        let capabilities = back_end.capabilities();
        let mut model = back_end.observe().await.unwrap().model;
        let todo = plan(&model, &desired, capabilities);
        assert_eq!(todo.problems, vec![]);
        for step in &todo.steps {
            interpret(&mut model, step).unwrap();
            for _ in 0..2 {
                let applied = back_end.apply(step).await;
                applied.unwrap_or_else(|e| panic!("{step:?}: {e:#?}"));
            }
            let seen = back_end.observe().await.unwrap().model;
            assert_eq!(seen, model, "{step:#?}");
        }
        assert_eq!(plan(&model, &desired, capabilities).steps, vec![]);
        println!("{} steps", todo.steps.len());
    });
}

#[tokio::test]
async fn each_step_does_what_it_means() {
    if !is_available() {
        return;
    }
    let ports = ["swp3", "swp4", "swp5", "swp31"];
    let leaf = Switch::start("steps", &ports).await;
    let mut first = underlay(11, &["swp31"]);
    tenant(&mut first, 27, 271, &["10.1.0.254/24", "2001:db8:1::fe/64"]);
    enter(&mut first, "swp3", place(271), 1500);
    enter(&mut first, "swp4", Membership::Quarantine, 1500);
    machine(&mut first, "swp5", 27, 4_210_000_001, "10.3.0.0/24");
    walk(&leaf, &first);
    // Another address, another tenant for the ports, and static tunnel ends.
    let mut second = underlay(12, &["swp31"]);
    tenant(&mut second, 28, 281, &["10.1.0.254/24"]);
    enter(&mut second, "swp3", Membership::Quarantine, 1500);
    enter(&mut second, "swp4", place(281), 1500);
    machine(&mut second, "swp5", 28, 4_210_000_002, "10.4.0.0/24");
    let segment = second.segments.get_mut(&super::models::vni(281)).unwrap();
    segment.remotes = [[10, 0, 0, 99].into(), [10, 0, 0, 98].into()].into();
    walk(&leaf, &second);
    let segment = second.segments.get_mut(&super::models::vni(281)).unwrap();
    segment.remotes.clear();
    segment.gateway = None;
    walk(&leaf, &second);
    let mut nothing = SwitchModel::default();
    for port in ports {
        enter(&mut nothing, port, Membership::Quarantine, 1500);
    }
    walk(&leaf, &nothing);
}
