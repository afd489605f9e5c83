//! Each back-end in the suite.

use std::time::Duration;

use agents_nos::chaos::{Chaos, FaultRates};
use agents_nos::stub::Stub;
use agents_nos::{Capability, Nos, plan};

use crate::namespace::Namespace;
use crate::run::run;
use crate::states::{PORTS, states};

/// Faults that the suite's own retries outlast. No change is lost: what a step has led to is
/// compared with the whole state.
pub(crate) const RATES: FaultRates = FaultRates {
    fails: 15,
    stalls: 2,
    stall: Duration::from_millis(1),
    unanswered: 15,
    ignored: 15,
    lost: 0,
    stale: 20,
};

fn stub() -> Stub {
    Stub::with_links(PORTS.map(|name| (name, [2, 0, 0, 0, 0, 1]))).unwrap()
}

#[tokio::test]
async fn stub_passes() {
    run(&stub()).await;
}

#[tokio::test]
async fn stub_with_fewer_capabilities_passes() {
    for capabilities in [
        &[][..],
        &[Capability::PrivatePorts, Capability::Remotes],
        &[Capability::Vlans, Capability::Underlay],
        &[Capability::Vrfs, Capability::PrivatePorts],
    ] {
        run(&stub().with_capabilities(capabilities)).await;
    }
}

#[tokio::test]
async fn chaos_passes() {
    for seed in 0..5 {
        run(&Chaos::new(stub(), seed, RATES)).await;
    }
}

#[test]
fn linux_passes() {
    if let Some(namespace) = Namespace::new("suite") {
        namespace.with_switch(async |switch| run(&switch).await);
    }
}

#[test]
fn linux_with_faults_passes() {
    if let Some(namespace) = Namespace::new("chaos") {
        namespace.with_switch(async |switch| run(&Chaos::new(switch, 7, RATES)).await);
    }
}

/// The answers and states of a switch, whose seed decides the faults.
async fn story(seed: u64) -> Vec<String> {
    let switch = Chaos::new(stub(), seed, RATES);
    let mut out = Vec::new();
    for (name, desired) in states() {
        let seen = switch.observe().await.unwrap().model;
        for step in plan(&seen, &desired, switch.capabilities()).steps {
            let applied = switch.apply(&step).await;
            out.push(format!("{name}: {step:?}: {applied:?}"));
        }
    }
    out
}

#[tokio::test]
async fn a_seed_decides_the_faults() {
    assert_eq!(story(3).await, story(3).await);
    assert_ne!(story(3).await, story(4).await);
}
