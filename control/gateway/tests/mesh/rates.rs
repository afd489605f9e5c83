//! Rates and lengths of the calls of one identity.

use control_state::AgentKind;
use proto_identity::Key;
use proto_link::{Code, LinkStatus};
use proto_mesh::*;
use proto_types::MachineId;
use tokio::time::timeout;

use crate::fixture::*;

const EVENTS: usize = 1_000;

/// Hammer on a machine of this number.
async fn hammer(control: &Control, pixie: &BootServiceClient, number: u8) -> MachineServiceClient {
    let uuid = format!("0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e{number:02x}");
    let mac = format!("52:54:00:00:00:{number:02x}");
    pixie.seen(seen_at_boot(&uuid, &mac)).await.unwrap();
    let ask = BootTicketRequest {
        machine_uuid: uuid.clone(),
        mac: mac.clone(),
    };
    let ticket = pixie.issue_ticket(ask).await.unwrap();
    let key = Key::generate().unwrap();
    let joined = control.join_as(&ticket.ticket_id, &ticket.secret, &key, &uuid, &mac);
    control.client(Some(&joined.await.unwrap())).into()
}

fn event(number: usize) -> MachineEvent {
    // None of them is a repetition of the one before.
    let kinds = ["Preparing", "Registering"];
    MachineEvent {
        event: kinds[number % kinds.len()].into(),
        message: format!("{number}"),
        time_ms: 0,
    }
}

#[tokio::test]
async fn a_machine_that_talks_without_end_is_told_to_wait() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let loud = hammer(&control, &pixie, 1).await;
    let quiet = hammer(&control, &pixie, 2).await;
    let revision = || {
        control
            .store
            .read_local(|tables| tables.revision())
            .unwrap()
    };
    let before = revision();
    let mut refused: Vec<LinkStatus> = Vec::new();
    for number in 0..EVENTS {
        if let Err(refusal) = loud.event(event(number)).await {
            refused.push(refusal);
        }
    }
    let written = revision() - before;
    let let_in = EVENTS - refused.len();
    assert!(
        let_in < 200 && written < 250,
        "{let_in} events, {written} entries"
    );
    for refusal in &refused {
        assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
        assert!(refusal.is_transient(), "{refusal}: agents repeat it");
    }
    // Others are not concerned, and whoever waits is heard again.
    quiet.event(event(0)).await.unwrap();
    let again = timeout(PATIENCE, async {
        while loud.event(event(0)).await.is_err() {}
    });
    again.await.unwrap();
    control.stop().await;
}

/// Each report that says something new is an entry of the log of every control node.
#[tokio::test]
async fn a_flood_of_reports_leaves_the_log_small() {
    const REPORTS: u64 = 60;
    let control = Control::start().await;
    let loud: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    let quiet: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf2").await;
    for leaf in [&loud, &quiet] {
        leaf.register(crate::reports::register()).await.unwrap();
    }
    let neighbour = LldpNeighbour {
        system_description: "x".repeat(1_000),
        ..LldpNeighbour::default()
    };
    let port = |number: u32| PortState {
        name: format!("swp{number}"),
        neighbours: vec![neighbour.clone()],
        ..PortState::default()
    };
    let report = |number: u64, ports: u32| SwitchReport {
        error: format!("{number}"),
        ports: (0..ports).map(port).collect(),
        ..SwitchReport::default()
    };
    let revision = || {
        control
            .store
            .read_local(|tables| tables.revision())
            .unwrap()
    };
    let before = revision();
    let mut refused = 0;
    for number in 0..REPORTS {
        if let Err(refusal) = loud.report(report(number, 512)).await {
            assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
            assert!(refusal.is_transient(), "{refusal}: the agent repeats it");
            refused += 1;
        }
    }
    // Half a MiB each: 8 MiB at once, and what a slow test takes minutes for.
    assert!(refused > REPORTS / 3, "{refused} refused");
    assert!(revision() - before <= REPORTS - refused);
    quiet.report(report(1, 2)).await.unwrap();
    control.stop().await;
}

#[tokio::test]
async fn registrations_of_a_machine_are_few() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let loud = hammer(&control, &pixie, 1).await;
    let mut results = Vec::new();
    for number in 0..40u64 {
        let request = MachineRegisterRequest {
            boot_id: format!("boot-{number}"),
            memory: number + 1,
            ..Default::default()
        };
        results.push(loud.register(request).await.map(drop));
    }
    let is_bound = |result: &&Result<(), LinkStatus>| {
        result
            .as_ref()
            .is_err_and(|e| e.code() == Code::ResourceExhausted)
    };
    let refused = results.iter().filter(is_bound).count();
    assert!((20..40).contains(&refused), "{results:?}");
    let id: MachineId = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e01".parse().unwrap();
    assert!(control.machine(id).hardware.memory < 40);
    control.stop().await;
}

#[tokio::test]
async fn a_request_that_is_too_long_is_named() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let loud = hammer(&control, &pixie, 1).await;
    let mut long = event(0);
    long.message = "x".repeat(100_000);
    let refusal = loud.event(long).await.unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidArgument);
    assert!(
        refusal.message().contains("MachineService/Event"),
        "{refusal}"
    );
    control.stop().await;
}
