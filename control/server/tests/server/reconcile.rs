//! A cluster restored from a backup judges nothing until its operator has reconciled it.

use std::process::Command;

use prost::Message;
use proto_public::api::v2::{MachineProvisioningEvent, MachineProvisioningEventType};
use proto_public::infra::v2::{
    BootServiceBootRequest, BootServiceDhcpRequest, EventServiceSendRequest,
    EventServiceSendResponse,
};
use serde_json::Value;

use crate::cli::Cli;
use crate::daemon::{Daemon, program};

const RECONCILE: [&str; 2] = ["cluster", "reconcile-after-restore"];
const MACHINES: [&str; 2] = [
    "00000000-0000-4000-8000-000000000001",
    "00000000-0000-4000-8000-000000000002",
];

/// A machine asks the boot server for an address.
async fn seen(daemon: &Daemon, uuid: &str) {
    let request = BootServiceDhcpRequest {
        uuid: uuid.to_owned(),
        partition: "lab".to_owned(),
    };
    let message = request.encode_to_vec().into();
    let path = "/metalstack.infra.v2.BootService/Dhcp";
    daemon.client().call(path, message).await.unwrap();
}

/// A switch agent of the published stack says that the system of a machine runs.
async fn phones_home(daemon: &Daemon, uuid: &str) -> EventServiceSendResponse {
    let event = MachineProvisioningEvent {
        event: MachineProvisioningEventType::PhonedHome.into(),
        ..MachineProvisioningEvent::default()
    };
    let request = EventServiceSendRequest {
        events: [(uuid.to_owned(), event)].into(),
    };
    let message = request.encode_to_vec().into();
    let path = "/metalstack.infra.v2.EventService/Send";
    let answer = daemon.client().call(path, message).await.unwrap();
    EventServiceSendResponse::decode(answer).unwrap()
}

/// A machine that nobody knows asks what to boot.
async fn boots(daemon: &Daemon) -> Result<(), String> {
    let request = BootServiceBootRequest {
        mac: "52:54:00:00:00:09".to_owned(),
        partition: "lab".to_owned(),
    };
    let message = request.encode_to_vec().into();
    let path = "/metalstack.infra.v2.BootService/Boot";
    let answer = daemon.client().call(path, message).await;
    answer.map(drop).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_cluster_waits_for_its_operator() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["partition", "create", "lab"]);
    for uuid in MACHINES {
        seen(&daemon, uuid).await;
    }
    let refused = cli.refused(&RECONCILE);
    assert!(refused.contains("MM-1804"), "{refused}");
    assert!(!cli.ok(&["cluster", "status"]).contains("restored"));
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let file = path("backup");
    cli.ok(&["cluster", "backup", &file]);
    assert!(daemon.terminate().success());
    std::fs::rename(path("data"), path("data-old")).unwrap();
    let restored = Command::new(program())
        .args(["restore", &file, "--data-dir", &path("data")])
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let hint = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(hint.contains("reconcile-after-restore"), "{hint}");

    let daemon = Daemon::start(dir.path());
    seen(&daemon, MACHINES[1]).await;
    let told = phones_home(&daemon, MACHINES[0]).await;
    assert_eq!(
        (told.events, &told.failed[..]),
        (0, &[MACHINES[0].to_owned()][..])
    );
    let refused = boots(&daemon).await.unwrap_err();
    assert!(refused.contains("MM-1805"), "{refused}");
    let status = cli.ok(&["cluster", "status"]);
    assert!(
        status.contains("reconciliation is paused until"),
        "{status}"
    );
    // A dry run compares, as often as one likes.
    let trial = [&RECONCILE[..], &["--dry-run", "-o", "json"]].concat();
    for _ in 0..2 {
        let compared: Value = serde_json::from_str(&cli.ok(&trial)).unwrap();
        let machines = compared["machines"].as_array().unwrap();
        let observed: Vec<(&str, bool)> = machines
            .iter()
            .map(|it| (it["uuid"].as_str().unwrap(), it["observed"] == true))
            .collect();
        assert_eq!(observed, [(MACHINES[0], false), (MACHINES[1], true)]);
        // That a machine booted does not prove whose it is.
        let is_unproven = |machine: &Value| machine["locked"] == true && machine["proven"] != true;
        assert!(machines.iter().all(is_unproven), "{compared}");
        assert!(compared["backupMadeAt"].is_string(), "{compared}");
    }
    // The hold outlives a restart.
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(dir.path());
    let shown = cli.ok(&RECONCILE);
    assert!(shown.contains(MACHINES[0]), "{shown}");
    let status = cli.ok(&["cluster", "status"]);
    assert!(!status.contains("reconciliation is paused"), "{status}");
    assert!(cli.refused(&RECONCILE).contains("MM-1804"));
    for uuid in MACHINES {
        let machine = cli.ok(&["machine", "show", uuid]);
        assert!(machine.contains("nothing proves what it is"), "{machine}");
    }
    boots(&daemon).await.unwrap();
    drop(daemon);
}
