//! Dry runs: everything is checked and answered as it would be, and nothing is changed.

use control_state::Kind;
use proto_public::methods;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::node::{Node, wanted_machine};
use crate::raw_http::post;

const CREATE: &str = "/metalstack.api.v2.MachineService/Create";
const DELETE: &str = "/metalstack.api.v2.MachineService/Delete";

/// All that is there, without what each call leaves.
fn state(node: &Node) -> Vec<String> {
    let left = [Kind::AuditEntry, Kind::AuditAnchor, Kind::Token];
    let all = node.store.read_local(|tables| {
        let records = tables.dump().filter(|it| !left.contains(&it.kind()));
        records.map(|it| format!("{it:?}")).collect()
    });
    all.unwrap()
}

async fn call(node: &Node, path: &str, token: &str, body: &Value) -> Result<Value, Value> {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let answer = post(node, path, &headers, body.to_string().into_bytes()).await;
    match answer.status {
        200 => Ok(answer.json()),
        _ => Err(answer.json()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_tried_and_stays_free() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    node.waiting_machine(1).await;
    let before = state(&node);
    let wanted = wanted_machine(&project, &network, "web-1");
    let wanted: Value = serde_json::from_slice(
        &proto_public::json::from_proto(
            &proto_public::message("metalstack.api.v2.MachineServiceCreateRequest").unwrap(),
            &prost::Message::encode_to_vec(&wanted),
        )
        .unwrap(),
    )
    .unwrap();
    let tried = call(&node, &format!("/dry-run{CREATE}"), &token, &wanted)
        .await
        .unwrap();
    assert_eq!(tried["machine"]["allocation"]["project"], project);
    assert_eq!(state(&node), before);
    // What would be refused is refused, in the same words.
    let mut wrong = wanted.clone();
    wrong["image"] = "debian-99.0".into();
    let real = call(&node, CREATE, &token, &wrong).await.unwrap_err();
    let tried = call(&node, &format!("/dry-run{CREATE}"), &token, &wrong)
        .await
        .unwrap_err();
    assert_eq!(tried, real);
    let stranger = node.tenant("rival").await.1;
    let refused = call(&node, &format!("/dry-run{CREATE}"), &stranger, &wanted).await;
    assert_eq!(refused.unwrap_err()["code"], "not_found");

    let made = call(&node, CREATE, &token, &wanted).await.unwrap();
    let before = state(&node);
    let which = json!({"uuid": made["machine"]["uuid"], "project": project});
    let tried = call(&node, &format!("/dry-run{DELETE}"), &token, &which)
        .await
        .unwrap();
    assert_eq!(tried["machine"]["uuid"], made["machine"]["uuid"]);
    assert_eq!(state(&node), before);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_method_changes_anything_when_it_is_tried() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, _) = node.tenant("acme").await;
    let machine = node.waiting_machine(1).await;
    let before = state(&node);
    let mut answered = 0;
    for method in methods() {
        let mut body = json!({});
        let of_all = [
            ("project", json!(project)),
            ("login", json!("acme")),
            ("uuid", json!(machine)),
            ("id", json!("debian-12.0")),
            ("name", json!("a-name")),
            ("role", json!(1)),
            ("password", json!("correct horse battery")),
            ("partition", json!("lab")),
        ];
        for (field, value) in of_all {
            if method
                .input
                .get_field_by_name(field)
                .is_some_and(|it| !it.is_list())
            {
                body[field] = value;
            }
        }
        let path = format!("/dry-run{}", method.path);
        let is_stream = method.server_streaming || method.client_streaming;
        if !is_stream && call(&node, &path, &node.admin, &body).await.is_ok() {
            answered += 1;
        }
        assert_eq!(state(&node), before, "{path}");
    }
    assert!(answered > 50, "{answered}");
    // What reaches further than the state is not tried at all.
    let path = "/dry-run/metalmesh.admin.v1.ClusterService/Promote";
    let refused = call(&node, path, &node.admin, &json!({"id": 1})).await;
    let refused = refused.unwrap_err();
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("ClusterService"),
        "{refused}"
    );
    let path = "/dry-run/metalmesh.admin.v1.JoinService/Create";
    let ticket = json!({"kind": "AGENT_KIND_CORE", "id": Uuid::nil().to_string()});
    assert!(call(&node, path, &node.admin, &ticket).await.is_err());
    node.stop().await;
}
