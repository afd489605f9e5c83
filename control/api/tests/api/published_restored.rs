//! A hammer of the published stack that comes back to a state restored from a backup.

use control_state::life::{restored, restored_machines};
use control_state::{EventLog, Machine, Phase, ReconcileRestore, Tables};
use infra::boot_service_client::BootServiceClient;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use proto_types::MachineId;

use crate::node::Node;
use crate::published_agents::{MAC, UUID, agent, registration, waiting};

/// What the restored state makes of a machine.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    is_observed: bool,
    is_proven: bool,
    phase: Phase,
    events: usize,
}

fn standing(node: &Node) -> Standing {
    let id: MachineId = UUID.parse().unwrap();
    let read = |tables: &Tables| {
        let made_at = restored(tables).expect("a restored state").made_at;
        let found = restored_machines(tables, made_at).find(|found| found.machine.id == id);
        let found = found.expect("the machine");
        Standing {
            is_observed: found.is_observed,
            is_proven: found.is_proven,
            phase: tables.get::<Machine>(&id).unwrap().phase,
            events: tables.get::<EventLog>(&id).unwrap().events.len(),
        }
    };
    node.store.read_local(read).unwrap()
}

/// The boot server makes a machine's token and could keep it, so that whatever is said with one
/// from the backup does not show that the machine is what the backup knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_backup_proves_no_machine() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, Some("lab")).await;
    let (_, token, stream) = waiting(&node, &agent).await;
    drop(stream);

    let node = node.restored().await;
    let before = standing(&node);
    assert!(!before.is_proven && before.phase == Phase::Waiting);
    let mut hammer = BootServiceClient::new(node.wire(Some(&token)));
    let request = infra::BootServiceWaitRequest { uuid: UUID.into() };
    let stream = hammer.wait(request).await.unwrap();
    assert_eq!(standing(&node), before, "its waiting changes nothing");
    drop(stream);

    // What it says is kept for the operator, who sees that somebody spoke for it.
    let event = api::MachineProvisioningEvent {
        event: api::MachineProvisioningEventType::Waiting.into(),
        message: String::new(),
        time: None,
    };
    let request = infra::BootServiceSendEventRequest {
        uuid: UUID.into(),
        event: Some(event),
    };
    hammer.send_event(request).await.unwrap();
    assert!(standing(&node).is_observed && !standing(&node).is_proven);
    hammer.register(registration(UUID)).await.ok();
    assert!(!standing(&node).is_proven);
    assert!(
        node.presence.fleet().heard.is_empty(),
        "a tick would prove it"
    );

    // Nor does a boot begin, by which the boot server would get it wiped.
    let mut boot = BootServiceClient::new(node.wire(Some(&agent)));
    let request = infra::BootServiceBootRequest {
        mac: MAC.into(),
        partition: "lab".into(),
    };
    let refused = boot.boot(request).await.unwrap_err();
    assert!(refused.message().contains("MM-1805"), "{refused}");

    // Once an operator has compared, signs of life count again.
    let reconcile = ReconcileRestore { judge_silent: true };
    node.hardware(reconcile).await;
    let request = infra::BootServiceWaitRequest { uuid: UUID.into() };
    hammer.wait(request).await.unwrap();
    assert_eq!(node.presence.fleet().heard.len(), 1);
    node.stop().await;
}
