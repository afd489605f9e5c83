//! Deliberate differences from the reference server that no other test shows.

use serde_json::{Value, json};

use crate::networks::{admin, call};
use crate::node::Node;
use crate::raw_http::post;

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_names_a_child_network() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, _) = node.tenant("acme").await;
    let wanted = json!({"id": "front", "type": "NETWORK_TYPE_CHILD", "project": project,
        "partition": "lab"});
    let made = admin(&node, "admin.v2.NetworkService/Create", wanted.clone()).await;
    let network = made.unwrap()["network"].clone();
    assert_eq!(
        (&network["id"], &network["parentNetwork"]),
        (&json!("front"), &json!("super"))
    );
    let again = admin(&node, "admin.v2.NetworkService/Create", wanted).await;
    assert_eq!(again.unwrap_err(), "already_exists");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_a_full_network_is_told_to_come_back() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    node.waiting_machine(1).await;
    let small = json!({"project": project, "partition": "lab", "length": {"ipv4": 30}});
    let made = call(&node, &token, "api.v2.NetworkService/Create", small).await;
    let network = made.unwrap()["network"]["id"].clone();
    let ip = json!({"network": network, "project": project});
    let mut ips = Vec::new();
    for _ in 0..2 {
        let made = call(&node, &token, "api.v2.IPService/Create", ip.clone()).await;
        ips.push(made.unwrap()["ip"]["ip"].clone());
    }
    let machine = json!({"project": project, "name": "web", "partition": "lab", "size": "small",
        "image": "debian-12.0", "filesystemLayout": "default",
        "networks": [{"network": network}], "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE"});
    let full = call(
        &node,
        &token,
        "api.v2.MachineService/Create",
        machine.clone(),
    )
    .await;
    assert_eq!(full.unwrap_err(), "resource_exhausted");
    let freed = json!({"ip": ips[0], "project": project});
    call(&node, &token, "api.v2.IPService/Delete", freed)
        .await
        .unwrap();
    let made = call(&node, &token, "api.v2.MachineService/Create", machine).await;
    let attached = made.unwrap()["machine"]["allocation"]["networks"][0].clone();
    assert_eq!(attached["ips"], json!([ips[0]]));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_without_a_boot_configuration_shows_none() {
    let node = Node::start().await;
    node.data_centre().await;
    let got = admin(&node, "api.v2.PartitionService/Get", json!({"id": "lab"})).await;
    let partition = got.unwrap()["partition"].clone();
    assert_eq!(partition["id"], "lab");
    assert_eq!(partition.get("bootConfiguration"), None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_calls_public_methods_that_it_does_not_list() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let listed = json!([{"project": {"project": project,
        "methods": ["/metalstack.api.v2.IPService/List"]}}]);
    let wanted = json!({"user": "acme", "tokenCreateRequest": {"permissions": listed}});
    let made = admin(&node, "admin.v2.TokenService/Create", wanted)
        .await
        .unwrap();
    let token = made["secret"].as_str().unwrap();
    for (method, body, refused) in [
        ("api.v2.IPService/List", json!({"project": project}), None),
        ("api.v2.VersionService/Get", json!({}), None),
        ("api.v2.HealthService/Get", json!({}), None),
        (
            "api.v2.NetworkService/List",
            json!({"project": project}),
            Some("permission_denied"),
        ),
    ] {
        let said = call(&node, token, method, body).await;
        assert_eq!(said.err().as_deref(), refused, "{method}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn six_services_of_health_are_one_store() {
    let node = Node::start().await;
    node.data_centre().await;
    let headers = [("content-type", "application/json")];
    let path = "/metalstack.api.v2.HealthService/Get";
    let answer = post(&node, path, &headers, b"{}".to_vec()).await;
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    let services = said["health"]["services"].as_array().unwrap();
    let is_machines = |service: &&Value| service["name"] == "SERVICE_MACHINES";
    let (machines, stored): (Vec<&Value>, Vec<&Value>) = services.iter().partition(is_machines);
    assert_eq!(stored.len(), 6, "{said}");
    for service in stored {
        assert_eq!(service["status"], "SERVICE_STATUS_HEALTHY");
        let message = service["message"].as_str().unwrap();
        assert!(
            message.starts_with("connected to the replicated store"),
            "{service}"
        );
    }
    let here = &machines[0]["partitions"]["lab"];
    let healthy = json!({"status": "SERVICE_STATUS_HEALTHY", "message": "no machine is dead"});
    assert_eq!(*here, healthy);
    node.stop().await;
}
