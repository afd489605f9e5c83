//! A hand on a real switch.

use agents_nos::{Capability, Limits, Nos, find_drift, observe, run_pass};
use std::time::{Duration, Instant};

use crate::namespace::Namespace;
use crate::states::states;

const LIMITS: Limits = Limits {
    step: Duration::from_secs(5),
    observe: Duration::from_secs(5),
};

#[test]
fn a_hand_on_a_linux_switch_is_noticed_told_and_healed() {
    let Some(namespace) = Namespace::new("hand") else {
        return;
    };
    let (_, desired) = states().swap_remove(1);
    let edits = [
        ("link set swp1 nomaster", "port swp1", true),
        ("link set swp1 down", "port swp1", false),
        (
            "link set swp2 type bridge_slave isolated on",
            "port swp2",
            true,
        ),
        ("link set mmb10 down", "segment 10", false),
        ("link add mmb77 type bridge", "segment 77", false),
    ];
    namespace.with_switch(async |switch| {
        let pass = async |switch: &agents_nos::linux::Linux| {
            let seen = observe(switch, LIMITS).await.unwrap();
            let passed = run_pass(switch, &desired, seen, &[], LIMITS).await.unwrap();
            assert_eq!((passed.failed, passed.rest), (vec![], vec![]));
        };
        let capabilities: &[Capability] = switch.capabilities();
        pass(&switch).await;
        for (edit, object, is_unsafe) in edits {
            // Events of the agent's own steps.
            while tokio::time::timeout(Duration::from_millis(50), switch.changed())
                .await
                .is_ok()
            {}
            namespace.ip(edit);
            let edited = Instant::now();
            tokio::time::timeout(Duration::from_secs(5), switch.changed())
                .await
                .unwrap();
            let seen = observe(&switch, LIMITS).await.unwrap();
            let drift = find_drift(&seen.model, &desired, &[], capabilities);
            assert!(edited.elapsed() < Duration::from_secs(1), "{edit}");
            let told = drift
                .iter()
                .map(|drift| (drift.object.to_string(), drift.is_unsafe));
            let told: Vec<_> = told.collect();
            assert_eq!(told, [(object.to_owned(), is_unsafe)], "{edit}");
            pass(&switch).await;
        }
    });
}
