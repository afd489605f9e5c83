//! What agents are told by a cluster that was restored from a backup.

use control_state::{AgentKind, ReconcileRestore};
use proto_identity::Key;
use proto_mesh::*;

use crate::fixture::*;

/// A segment that the backup does not know.
const OTHERS: u32 = 4711;

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_is_told_nothing_before_it_is_reconciled() {
    let control = Control::start().await;
    let ticket = Control::new_ticket(AgentKind::Core, "p1", "leaf1");
    let ticket = control.ticket(ticket).await;
    let key = Key::generate().unwrap();
    let credential = control.join(&ticket, &key).await.unwrap();
    let core: SwitchServiceClient = control.client(Some(&credential)).into();
    let port = |n: u32| SwitchPort {
        name: format!("swp{n}"),
        mac: String::new(),
    };
    let register = SwitchRegisterRequest {
        ports: vec![port(1), port(2)],
        ..Default::default()
    };
    core.register(register).await.unwrap();
    let told = next(&mut core.desired(SwitchDesiredRequest {}).await.unwrap()).await;

    let control = control.restored().await;
    let core: SwitchServiceClient = control.client(Some(&credential)).into();
    let mut stream = core.desired(SwitchDesiredRequest {}).await.unwrap();
    let reconcile = || ReconcileRestore {
        judge_silent: false,
    };
    let refused = control.propose(reconcile()).await.unwrap_err();
    assert!(refused.contains("leaf1"), "it has not reported: {refused}");
    let observed = |port: &PortIntent| PortState {
        name: port.name.clone(),
        vni: if port.name == "swp1" { OTHERS } else { port.vni },
        admin_up: true,
        oper_up: true,
        ..PortState::default()
    };
    let report = SwitchReport {
        applied_term: told.term,
        applied_generation: told.generation,
        ports: told.ports.iter().map(observed).collect(),
        ..SwitchReport::default()
    };
    core.report(report).await.unwrap();
    control.propose(reconcile()).await.unwrap();
    // The first that it is told keeps the port where somebody may need it.
    let first = next(&mut stream).await;
    assert!(first.term > told.term);
    let ports = first.ports.iter().map(|port| (port.name.as_str(), port.vni));
    assert_eq!(ports.collect::<Vec<_>>(), [("swp1", OTHERS), ("swp2", 4000)]);
    control.stop().await;
}
