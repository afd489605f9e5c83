//! Random states of a SONiC switch: each state leads to each other one, to the same end as a fresh
//! start, with no more steps than the difference needs.

use agents_nos::frr::Vtysh;
use agents_nos::model::Mtu;
use agents_nos::{Nos, Plan, SwitchModel, fit, plan};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::daemons;
use crate::lower_bound::needed;
use crate::random::{Kind, any_state};
use crate::sonic_switch::Switch;

const PORTS: [&str; 4] = ["p1", "p2", "p3", "p4"];
/// Random states without FRR, and with it.
const CASES: usize = 60;
const CASES_WITH_FRR: usize = 8;

/// Desired states that leave nothing open, so that they are the same from any state.
fn desired(runner: &mut TestRunner) -> SwitchModel {
    let mut state = any_state(Kind::Desired).new_tree(runner).unwrap().current();
    for name in PORTS {
        let name = crate::fixture::port(name);
        let port = state.ports.entry(name).or_insert(agents_nos::model::Port {
            admin_up: false,
            mtu: None,
            membership: agents_nos::Membership::Quarantine,
        });
        port.mtu = port.mtu.or_else(|| Some(Mtu::nearest(9100)));
        // The gate in front of machines' ports has tests of its own.
        port.admin_up = false;
    }
    state.vtep = state.vtep.or_else(|| Some([10, 9, 0, 1].into()));
    state
}

/// Moves a switch to a state, and checks its steps and its end.
async fn moved(switch: &Switch, desired: &SwitchModel, case: usize) -> SwitchModel {
    let capabilities = switch.sonic.capabilities();
    let before = switch.sonic.observe().await.unwrap().model;
    let target = fit(&before, desired, capabilities).model;
    let Plan { steps, .. } = plan(&before, desired, capabilities);
    assert_eq!(
        steps.len(),
        needed(&before, &target),
        "case {case}: {steps:?}"
    );
    let applied = switch.sonic.apply_all(&steps).await;
    applied.unwrap_or_else(|error| panic!("case {case}: {error:#?} in {steps:#?}"));
    let seen = switch.sonic.observe().await.unwrap().model;
    assert_eq!(seen, target, "case {case}");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_leads_to_every_other_one_as_a_fresh_start_does() {
    let Some(switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    switch.remove_map_of_site();
    let mut runner = TestRunner::deterministic();
    for case in 0..CASES {
        let desired = desired(&mut runner);
        let seen = moved(&switch, &desired, case).await;
        let fresh = Switch::start(0, &PORTS, None).unwrap();
        fresh.remove_map_of_site();
        assert_eq!(seen, moved(&fresh, &desired, case).await, "case {case}");
        assert_eq!(fresh.orchagent.wrong(), Vec::<String>::new());
    }
    assert_eq!(switch.orchagent.wrong(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_with_bgp_leads_to_every_other_one() {
    if !daemons::is_available() {
        return;
    }
    let frr = daemons::Switch::start("sonicr", &[]).await;
    let vtysh = Vtysh {
        command: ["vtysh", "-N", &frr.name].map(str::to_owned).to_vec(),
        ..Vtysh::default()
    };
    let Some(switch) = Switch::start(0, &PORTS, Some(vtysh)) else {
        return;
    };
    switch.remove_map_of_site();
    let mut runner = TestRunner::deterministic();
    for case in 0..CASES_WITH_FRR {
        moved(&switch, &desired(&mut runner), case).await;
    }
    assert_eq!(switch.orchagent.wrong(), Vec::<String>::new());
}

/// Rows of the agent that somebody removes.
fn some_row(switch: &Switch, case: usize) -> Option<String> {
    let rows = switch.client().rows(4).unwrap();
    let tables = [
        "VLAN_MEMBER|",
        "VLAN_INTERFACE|",
        "INTERFACE|",
        "METALMESH_",
        "VXLAN_TUNNEL_MAP|",
    ];
    let ours = |key: &String| tables.iter().any(|table| key.starts_with(table));
    let mut keys: Vec<String> = rows.into_keys().filter(ours).collect();
    let number = case.checked_rem(keys.len())?;
    Some(keys.swap_remove(number))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_lost_a_row_comes_to_the_desired_state() {
    let Some(switch) = Switch::start(0, &PORTS, None) else {
        return;
    };
    switch.remove_map_of_site();
    let mut runner = TestRunner::deterministic();
    let capabilities = switch.sonic.capabilities();
    for case in 0..CASES {
        let desired = desired(&mut runner);
        let mut lost = None;
        // A row more or less needs a pass, or a second one after a repair.
        for pass in 0..5 {
            let seen = switch.sonic.observe().await.unwrap().model;
            let steps = plan(&seen, &desired, capabilities).steps;
            if steps.is_empty() && lost.is_some() {
                break;
            }
            assert!(pass < 4, "case {case} without {lost:?}: {steps:?}");
            if let Err(error) = switch.sonic.apply_all(&steps).await {
                println!("case {case} without {lost:?}: {error}");
            }
            if lost.is_none() {
                lost = some_row(&switch, case).or(Some(String::new()));
                let mut client = switch.client();
                client.run(&["SELECT", "4"]).unwrap();
                client.run(&["DEL", lost.as_ref().unwrap()]).unwrap();
            }
        }
    }
}
