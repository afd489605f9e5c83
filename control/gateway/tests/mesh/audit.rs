//! Records of calls that control cannot read.

use std::time::Duration;

use control_state::{AgentKind, AuditEntry};
use proto_mesh::*;

use crate::fixture::*;
use crate::hammer::boot_as;

const MACHINE: (&str, &str) = ("0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f", "52:54:00:00:00:01");
/// `INVALID_ARGUMENT` of `google.rpc.Code`.
const INVALID_ARGUMENT: i32 = 3;
const PATIENCE: Duration = Duration::from_secs(20);

/// The codes with which calls of a method ended, as the trail has them.
fn ends(control: &Control, method: &str) -> Vec<i32> {
    let read = control.store.read_local(|tables| {
        let entries = tables.all::<AuditEntry>();
        let named = entries.filter(|entry| entry.method.ends_with(method));
        named.filter_map(|entry| entry.result_code).collect()
    });
    read.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_cannot_be_read_is_on_record() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let hammer = boot_as(&control, &pixie, MACHINE.0, MACHINE.1).await;
    let report = InstallReport {
        allocation_uuid: "nonsense".repeat(100),
        ..InstallReport::default()
    };
    hammer.install_done(report).await.unwrap_err();
    let ticket = BootTicketRequest {
        machine_uuid: "nonsense".into(),
        ..BootTicketRequest::default()
    };
    pixie.issue_ticket(ticket).await.unwrap_err();
    let recorded = async {
        while ends(&control, "InstallDone").is_empty()
            || !ends(&control, "IssueTicket").contains(&INVALID_ARGUMENT)
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, recorded).await.unwrap();
    assert_eq!(ends(&control, "InstallDone"), [INVALID_ARGUMENT]);
    let about = control.store.read_local(|tables| {
        let mut entries = tables.all::<AuditEntry>();
        let found = entries.find(|entry| entry.method.ends_with("InstallDone"));
        found.and_then(|entry| entry.body.clone())
    });
    let length = about.unwrap().unwrap().len();
    assert!(length < 800, "{length} bytes of the report are on record");
    control.stop().await;
}
