//! Nobody of a project gets into its firewall: keys, user data, and what is shown of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::{Code, Status};

use crate::firewall_rules::{site, wanted_firewall};
use crate::node::{Node, Wire};

type Machines = api::machine_service_client::MachineServiceClient<Wire>;
type Admins = admin::machine_service_client::MachineServiceClient<Wire>;
type Change = fn(&mut api::MachineServiceCreateRequest);

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me";
/// `#cloud-config`, base64.
const USERDATA: &str = "I2Nsb3VkLWNvbmZpZwo=";

fn update(uuid: &str, project: &str, key: Option<&str>) -> api::MachineServiceUpdateRequest {
    api::MachineServiceUpdateRequest {
        uuid: uuid.to_owned(),
        project: project.to_owned(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        description: Some("between the networks".into()),
        labels: None,
        ssh_public_keys: key.into_iter().map(str::to_owned).collect(),
    }
}

fn assert_refused(refused: &Status, field: &str) {
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    assert!(refused.message().contains(field), "{refused}");
    assert!(
        refused.message().contains("firewall rules apply"),
        "{refused}"
    );
}

async fn shown_to_admin(node: &Node, uuid: &str) -> api::MachineAllocation {
    let mut admins = Admins::new(node.as_admin());
    let get = admin::MachineServiceGetRequest {
        uuid: uuid.to_owned(),
    };
    let shown = admins.get(get).await.unwrap().into_inner();
    shown.machine.unwrap().allocation.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_gets_neither_key_nor_script_into_its_firewall() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    node.waiting_machine(1).await;
    let mut machines = Machines::new(node.wire(Some(&token)));
    let attempts: [(&str, Change); 3] = [
        ("ssh_public_keys", |wanted| {
            wanted.ssh_public_keys = vec![KEY.into()];
        }),
        ("userdata", |wanted| wanted.userdata = Some(USERDATA.into())),
        ("ssh_public_keys", |wanted| {
            wanted.ssh_public_keys = vec![KEY.into()];
            wanted.userdata = Some(USERDATA.into());
        }),
    ];
    for (field, change) in attempts {
        let mut wanted = wanted_firewall(&project, &network);
        change(&mut wanted);
        assert_refused(&machines.create(wanted).await.unwrap_err(), field);
    }
    // Published clients send the field empty.
    let mut wanted = wanted_firewall(&project, &network);
    wanted.userdata = Some(String::new());
    wanted.hostname = Some("fw-1".into());
    let made = machines.create(wanted).await.unwrap().into_inner();
    let machine = made.machine.unwrap();
    assert_eq!(machine.allocation.unwrap().userdata, "");
    let refused = machines.update(update(&machine.uuid, &project, Some(KEY)));
    assert_refused(&refused.await.unwrap_err(), "ssh_public_keys");
    let changed = machines.update(update(&machine.uuid, &project, None)).await;
    let changed = changed.unwrap().into_inner().machine.unwrap();
    assert_eq!(changed.allocation.unwrap().userdata, "");

    // An administrator sees the files that control made.
    let shown = shown_to_admin(&node, &machine.uuid).await;
    let made = String::from_utf8(STANDARD.decode(shown.userdata).unwrap()).unwrap();
    for wanted in [
        "# /etc/firewall-controller/config.yaml\n",
        "name: \"fw-1\"\n",
        &format!("sources:\n  metal:\n    projectID: \"{project}\"\n"),
    ] {
        assert!(made.contains(wanted), "{wanted}{made}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_access_to_a_firewall_is_not_shown_to_its_project() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    node.waiting_machine(1).await;
    let mut wanted = wanted_firewall(&project, &network);
    wanted.ssh_public_keys = vec![KEY.into()];
    wanted.userdata = Some(USERDATA.into());
    let made = Machines::new(node.as_admin()).create(wanted).await.unwrap();
    let uuid = made.into_inner().machine.unwrap().uuid;
    let get = api::MachineServiceGetRequest {
        uuid: uuid.clone(),
        project: project.clone(),
    };
    let list = api::MachineServiceListRequest {
        project: project.clone(),
        query: None,
    };
    let mut machines = Machines::new(node.wire(Some(&token)));
    let got = machines.get(get).await.unwrap().into_inner().machine;
    let listed = machines.list(list).await.unwrap().into_inner().machines;
    for machine in got.into_iter().chain(listed) {
        let allocation = machine.allocation.unwrap();
        assert_eq!(allocation.userdata, "");
        assert!(allocation.ssh_public_keys.is_empty());
    }
    let shown = shown_to_admin(&node, &uuid).await;
    assert_eq!(shown.userdata, USERDATA);
    assert_eq!(shown.ssh_public_keys, [KEY]);
    node.stop().await;
}
