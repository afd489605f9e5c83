//! Addresses: whose they are to change, and which of several is meant.

use serde_json::{Value, json};

use crate::networks::{Said, admin, call, create, namespaced, refused, underlay};
use crate::node::Node;
use crate::raw_http::post;

#[tokio::test(flavor = "multi_thread")]
async fn an_underlay_address_is_changed_by_administrators_only() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    create(&node, underlay()).await.unwrap();
    let wanted = json!({"network": "underlay", "project": project});
    let made = admin(&node, "api.v2.IPService/Create", wanted).await;
    let ip = made.unwrap()["ip"].clone();
    let this = json!({"ip": ip["ip"], "project": project});
    let with = |fields: Value| {
        let mut body = this.clone();
        body["updateMeta"] = json!({"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"});
        let fields = fields.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(fields);
        body
    };
    for change in [
        json!({"type": "IP_TYPE_STATIC"}),
        json!({"name": "mine"}),
        json!({"description": "mine"}),
        json!({"labels": {"replace": {"labels": {"a": "b"}}}}),
    ] {
        let said = call(&node, &token, "api.v2.IPService/Update", with(change)).await;
        assert_eq!(refused(said), "permission_denied");
    }
    let said = call(&node, &token, "api.v2.IPService/Delete", this.clone()).await;
    assert_eq!(refused(said), "permission_denied");
    // What its project reads can be written back all the same.
    let same = with(json!({"type": ip["type"], "name": ip["name"]}));
    let said = call(&node, &token, "api.v2.IPService/Update", same).await;
    assert_eq!(said.unwrap()["ip"], ip);
    let change = with(json!({"type": "IP_TYPE_STATIC"}));
    let said = admin(&node, "api.v2.IPService/Update", change).await;
    assert_eq!(said.unwrap()["ip"]["type"], "IP_TYPE_STATIC");
    admin(&node, "api.v2.IPService/Delete", this).await.unwrap();
    node.stop().await;
}

/// A call that says in which namespace the address is.
async fn call_in(node: &Node, token: &str, method: &str, body: &Value, namespace: &str) -> Said {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("metalmesh-namespace", namespace),
    ];
    let path = format!("/metalstack.api.v2.IPService/{method}");
    let answer = post(node, &path, &headers, body.to_string().into_bytes()).await;
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    if answer.status == 200 {
        Ok(said["ip"].clone())
    } else {
        Err(said["code"].as_str().unwrap().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_equal_addresses_none_is_guessed() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    create(&node, namespaced()).await.unwrap();
    let wide = json!({"id": "wide", "type": "NETWORK_TYPE_EXTERNAL", "vrf": 78,
        "prefixes": ["10.64.0.0/16"]});
    create(&node, wide).await.unwrap();
    let own = json!({"project": project, "parentNetwork": "spaces"});
    let own = call(&node, &token, "api.v2.NetworkService/Create", own).await;
    let own = own.unwrap()["network"].clone();
    let mut made = Vec::new();
    for network in [&own["id"], &json!("wide")] {
        let wanted = json!({"network": network, "project": project, "ip": "10.64.0.9"});
        let said = call(&node, &token, "api.v2.IPService/Create", wanted).await;
        made.push(said.unwrap()["ip"].clone());
    }
    let this = json!({"ip": "10.64.0.9", "project": project});
    let got = call(&node, &token, "api.v2.IPService/Get", this.clone()).await;
    assert_eq!(got.unwrap()["ip"], made[1], "the plain one is shown first");
    let mut update = this.clone();
    update["updateMeta"] = json!({"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"});
    update["name"] = "renamed".into();
    for (method, body) in [("Update", &update), ("Delete", &this)] {
        let path = format!("api.v2.IPService/{method}");
        let said = call(&node, &token, &path, body.clone()).await;
        assert_eq!(refused(said), "failed_precondition", "{method}");
        for wrong in ["", "nowhere"] {
            let said = call_in(&node, &token, method, body, wrong).await;
            assert_eq!(refused(said), "invalid_argument", "{method} {wrong:?}");
        }
        let other = "00000000-0000-4000-8000-0000000000ff";
        let said = call_in(&node, &token, method, body, other).await;
        assert_eq!(refused(said), "not_found", "{method}");
    }
    for (namespace, ip) in [(project.as_str(), &made[0]), ("none", &made[1])] {
        let said = call_in(&node, &token, "Update", &update, namespace).await;
        let said = said.unwrap();
        assert_eq!(
            (&said["uuid"], &said["name"]),
            (&ip["uuid"], &json!("renamed"))
        );
    }
    let gone = call_in(&node, &token, "Delete", &this, "none").await;
    assert_eq!(gone.unwrap()["uuid"], made[1]["uuid"]);
    // The other is alone now, and needs no word.
    let gone = call(&node, &token, "api.v2.IPService/Delete", this).await;
    assert_eq!(gone.unwrap()["ip"]["uuid"], made[0]["uuid"]);
    node.stop().await;
}
