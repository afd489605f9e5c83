//! A provisioning segment sends machines that somebody makes up, and events of senders whose clocks
//! are wrong.

use std::sync::Arc;

use control_state::{AgentKind, EventKind, EventLog, MAC_MACHINES_MAX, Machine, query};
use proto_link::Code;
use proto_mesh::*;

use crate::fixture::*;
use crate::hammer::{MAC, UUID, boot};

const HOUR_MS: u64 = 3_600_000;

fn machines(control: &Control) -> usize {
    let count = control.store.read_local(|t| t.all::<Machine>().count());
    count.unwrap()
}

fn log(control: &Control) -> Arc<EventLog> {
    let id = UUID.parse().unwrap();
    let log = control
        .store
        .read_local(|t| t.get::<EventLog>(&id).cloned());
    log.unwrap().expect("events")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_host_makes_up_few_machines() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let mut refused = 0;
    for number in 0..149 {
        let uuid = format!("00000000-0000-4000-8000-{number:012}");
        let mac = format!("52:54:00:00:01:0{}", number % 3);
        if let Err(e) = pixie.seen(seen_at_boot(&uuid, &mac)).await {
            // Not to be told again: the boot server goes on to the next.
            assert_eq!(
                (e.code(), e.catalogue()),
                (Code::FailedPrecondition, Some(1216))
            );
            refused += 1;
        }
    }
    assert_eq!(machines(&control), 3 * MAC_MACHINES_MAX);
    assert_eq!(refused, 149 - 3 * MAC_MACHINES_MAX);
    boot(&control, &pixie).await;
    let partition = "p1".parse().unwrap();
    let mac = MAC.parse().unwrap();
    let known = control.store.read_local(|t| {
        let found = query::machine_of_mac(t, &partition, mac);
        found.map(|machine| machine.id.to_string())
    });
    assert_eq!(known.unwrap().as_deref(), Some(UUID));
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_wrong_clock_tells_twice_counts_once() {
    for ahead in [true, false] {
        let control = Control::start().await;
        let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
        let now = control.store.now().ms();
        let clock = if ahead { now + HOUR_MS } else { now - HOUR_MS };
        let hammer = boot(&control, &pixie).await;
        let event = |event: &str| MachineEvent {
            event: event.into(),
            message: String::new(),
            time_ms: clock,
        };
        let seen = BootSeenRequest {
            seen_ms: clock,
            told_ms: clock + 10,
            ..seen_at_boot(UUID, MAC)
        };
        pixie.seen(seen.clone()).await.unwrap();
        for _ in 0..2 {
            hammer.event(event("Preparing")).await.unwrap();
        }
        // The answer was lost, and the boot server tells it once more.
        let again = BootSeenRequest {
            told_ms: clock + 5_000,
            ..seen
        };
        pixie.seen(again).await.unwrap();
        hammer.event(event("Registering")).await.unwrap();
        hammer.event(event("Preparing")).await.unwrap();
        let log = log(&control);
        assert!(!log.crash_loop && log.last_error_event.is_none(), "{log:?}");
        assert_eq!(log.state, Some(EventKind::Registering));
        control.stop().await;
    }
}
