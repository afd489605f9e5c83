//! Networks and addresses as clients of the contract see them.

use serde_json::{Value, json};

use crate::node::Node;
use crate::raw_http::post;

/// An answer, or the code of the refusal.
pub(crate) type Said = Result<Value, String>;

/// A call with JSON, by a token; `method` without the package's owner: `api.v2.IPService/Get`.
pub(crate) async fn call(node: &Node, token: &str, method: &str, body: Value) -> Said {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let path = format!("/metalstack.{method}");
    let answer = post(node, &path, &headers, body.to_string().into_bytes()).await;
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    if answer.status == 200 {
        Ok(said)
    } else {
        Err(said["code"].as_str().unwrap().to_owned())
    }
}

pub(crate) async fn admin(node: &Node, method: &str, body: Value) -> Said {
    call(node, &node.admin, method, body).await
}

pub(crate) async fn create(node: &Node, body: Value) -> Said {
    let made = admin(node, "admin.v2.NetworkService/Create", body).await?;
    Ok(made["network"].clone())
}

pub(crate) fn refused(said: Said) -> String {
    said.unwrap_err()
}

pub(crate) fn underlay() -> Value {
    json!({"id": "underlay", "type": "NETWORK_TYPE_UNDERLAY", "partition": "lab",
        "prefixes": ["192.0.2.0/29"]})
}

pub(crate) fn internet() -> Value {
    json!({"id": "internet", "type": "NETWORK_TYPE_EXTERNAL", "vrf": 77,
        "prefixes": ["198.51.100.0/24"], "destinationPrefixes": ["0.0.0.0/0"],
        "natType": "NAT_TYPE_IPV4_MASQUERADE"})
}

pub(crate) fn namespaced() -> Value {
    json!({"id": "spaces", "type": "NETWORK_TYPE_SUPER_NAMESPACED", "prefixes": ["10.64.0.0/16"],
        "defaultChildPrefixLength": {"ipv4": 24}, "additionalAnnouncableCidrs": ["10.200.0.0/16"]})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_underlay_is_the_administrators() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    create(&node, underlay()).await.unwrap();
    let wanted = json!({"network": "underlay", "project": project});
    let taken = call(&node, &token, "api.v2.IPService/Create", wanted.clone()).await;
    assert_eq!(refused(taken), "permission_denied");
    admin(&node, "api.v2.IPService/Create", wanted)
        .await
        .unwrap();
    let asked = json!({"project": project});
    let base = call(
        &node,
        &token,
        "api.v2.NetworkService/ListBaseNetworks",
        asked,
    );
    let base = base.await.unwrap();
    let ids: Vec<_> = base["networks"].as_array().unwrap().iter().collect();
    assert!(ids.iter().all(|it| it["id"] != "underlay"), "{base}");
    let asked = json!({"project": project, "id": "underlay"});
    let got = call(&node, &token, "api.v2.NetworkService/Get", asked).await;
    assert_eq!(refused(got), "not_found");
    node.stop().await;
}

/// An update by an administrator.
async fn update(node: &Node, id: &str, change: Value) -> Said {
    let mut body = json!({"id": id, "updateMeta":
        {"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"}});
    let fields = change.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    let changed = admin(node, "admin.v2.NetworkService/Update", body).await?;
    Ok(changed["network"].clone())
}

/// Everything of a network that an update can say.
fn updatable(network: &Value) -> Value {
    const FIELDS: [&str; 8] = [
        "name",
        "description",
        "prefixes",
        "destinationPrefixes",
        "defaultChildPrefixLength",
        "minChildPrefixLength",
        "natType",
        "additionalAnnouncableCidrs",
    ];
    let network = network.as_object().unwrap();
    let given = network
        .iter()
        .filter(|(name, _)| FIELDS.contains(&name.as_str()));
    Value::Object(given.map(|(name, it)| (name.clone(), it.clone())).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_can_be_written_back() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let child = node.network(&token, &project).await;
    for made in [underlay(), internet(), namespaced()] {
        create(&node, made).await.unwrap();
    }
    for id in ["super", "underlay", "internet", "spaces", child.as_str()] {
        let asked = json!({"id": id});
        let got = admin(&node, "admin.v2.NetworkService/Get", asked).await;
        let before = updatable(&got.unwrap()["network"]);
        let after = update(&node, id, before.clone()).await.unwrap();
        assert_eq!(updatable(&after), before, "{id}");
        let mut renamed = before.clone();
        renamed["name"] = "renamed".into();
        let after = update(&node, id, json!({"name": "renamed"})).await.unwrap();
        assert_eq!(updatable(&after), renamed, "{id}: the name alone");
        let prefixes = json!({"name": "renamed", "prefixes": before["prefixes"]});
        let after = update(&node, id, prefixes).await.unwrap();
        assert_eq!(updatable(&after), renamed, "{id}: with the prefixes");
    }
    let fewer = json!({"additionalAnnouncableCidrs": ["10.201.0.0/16"]});
    let after = update(&node, "spaces", fewer).await;
    assert_eq!(refused(after), "failed_precondition", "by force only");
    let other = json!({"description": "renamed by force", "force": true});
    let after = update(&node, "spaces", other).await.unwrap();
    assert_eq!(
        after["additionalAnnouncableCidrs"],
        json!(["10.200.0.0/16"])
    );
    let other = json!({"destinationPrefixes": ["::/0"]});
    let after = update(&node, "internet", other).await;
    assert_eq!(refused(after), "invalid_argument", "a version it lacks");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_a_network_are_emptied_by_the_unspecified_prefix() {
    let node = Node::start().await;
    create(&node, internet()).await.unwrap();
    create(&node, namespaced()).await.unwrap();
    for nothing in ["0.0.0.0/32", "::/128"] {
        let set = json!({"destinationPrefixes": ["198.18.0.0/15"]});
        update(&node, "internet", set).await.unwrap();
        let empty = json!({"destinationPrefixes": [nothing]});
        let after = update(&node, "internet", empty).await.unwrap();
        assert_eq!(after.get("destinationPrefixes"), None);
        let set = json!({"additionalAnnouncableCidrs": ["10.200.0.0/16"]});
        update(&node, "spaces", set).await.unwrap();
        let mut empty = json!({"additionalAnnouncableCidrs": [nothing]});
        let after = update(&node, "spaces", empty.clone()).await;
        assert_eq!(refused(after), "failed_precondition", "by force only");
        empty["force"] = true.into();
        let after = update(&node, "spaces", empty).await.unwrap();
        assert_eq!(after.get("additionalAnnouncableCidrs"), None);
    }
    // Beside others, and as an address of the network, it means nothing.
    for field in [
        "destinationPrefixes",
        "additionalAnnouncableCidrs",
        "prefixes",
    ] {
        let both = json!({field: ["0.0.0.0/32", "198.18.0.0/15"]});
        let after = update(&node, "internet", both).await;
        assert_eq!(refused(after), "invalid_argument", "{field}");
    }
    let mut other = internet();
    other["id"] = "nothing".into();
    other["prefixes"] = json!(["::/128"]);
    assert_eq!(refused(create(&node, other).await), "invalid_argument");
    // On create it stands for none as well.
    let mut other = internet();
    other["id"] = "other".into();
    other["vrf"] = 79.into();
    other["prefixes"] = json!(["203.0.113.0/24"]);
    other["destinationPrefixes"] = json!(["0.0.0.0/32"]);
    let made = create(&node, other).await.unwrap();
    assert_eq!(made.get("destinationPrefixes"), None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_anothers_namespace_is_found() {
    let node = Node::start().await;
    node.data_centre().await;
    let (owner, _) = node.tenant("acme").await;
    let (guest, token) = node.tenant("globex").await;
    create(&node, namespaced()).await.unwrap();
    let shared = json!({"type": "NETWORK_TYPE_CHILD_SHARED", "project": owner,
        "parentNetwork": "spaces"});
    let shared = create(&node, shared).await.unwrap();
    let wanted = json!({"network": shared["id"], "project": guest});
    let made = call(&node, &token, "api.v2.IPService/Create", wanted).await;
    let ip = made.unwrap()["ip"].clone();
    assert_eq!(ip["namespace"], owner.as_str());
    let this = json!({"ip": ip["ip"], "project": guest});
    let got = call(&node, &token, "api.v2.IPService/Get", this.clone()).await;
    assert_eq!(got.unwrap()["ip"]["uuid"], ip["uuid"]);
    let mut named = this.clone();
    named["namespace"] = owner.as_str().into();
    call(&node, &token, "api.v2.IPService/Get", named.clone())
        .await
        .unwrap();
    named["namespace"] = guest.as_str().into();
    let got = call(&node, &token, "api.v2.IPService/Get", named).await;
    assert_eq!(refused(got), "not_found");
    call(&node, &token, "api.v2.IPService/Delete", this)
        .await
        .unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_project_what_is_nobodys() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    node.network(&token, &project).await;
    for body in [json!({}), json!({"project": ""})] {
        for method in ["List", "ListBaseNetworks"] {
            let path = format!("api.v2.NetworkService/{method}");
            let listed = admin(&node, &path, body.clone()).await.unwrap();
            let listed = listed["networks"].as_array().unwrap();
            let ids: Vec<_> = listed.iter().map(|it| &it["id"]).collect();
            assert_eq!(ids, ["super"], "{method}");
            assert!(call(&node, &token, &path, body.clone()).await.is_err());
        }
        let mut body = body;
        body["id"] = "super".into();
        let got = admin(&node, "api.v2.NetworkService/Get", body).await;
        assert_eq!(got.unwrap()["network"]["id"], "super");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_what_cannot_be_made() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let child = node.network(&token, &project).await;
    for there in [
        json!({"id": "super", "type": "NETWORK_TYPE_SUPER"}),
        json!({"id": "super"}),
        json!({"id": "super", "type": "NETWORK_TYPE_SUPER", "natType": "NAT_TYPE_UNSPECIFIED"}),
        json!({"id": "super", "addressFamily": "NETWORK_ADDRESS_FAMILY_UNSPECIFIED"}),
    ] {
        assert_eq!(refused(create(&node, there).await), "already_exists");
    }
    let with_vrf = json!({"type": "NETWORK_TYPE_CHILD", "project": project, "partition": "lab",
        "vrf": 4711});
    assert_eq!(refused(create(&node, with_vrf).await), "invalid_argument");
    let mut overlapping = internet();
    overlapping["prefixes"] = json!(["10.128.4.0/24"]);
    assert_eq!(refused(create(&node, overlapping).await), "already_exists");
    let second = json!({"id": "second", "type": "NETWORK_TYPE_SUPER", "partition": "lab",
        "prefixes": ["172.16.0.0/16"], "defaultChildPrefixLength": {"ipv4": 24}});
    assert_eq!(refused(create(&node, second).await), "invalid_argument");
    let mut mixed = internet();
    mixed["destinationPrefixes"] = json!(["0.0.0.0/0", "::/0"]);
    assert_eq!(refused(create(&node, mixed).await), "invalid_argument");
    let whole = json!({"id": "whole", "type": "NETWORK_TYPE_SUPER",
        "prefixes": ["172.16.0.0/16"], "defaultChildPrefixLength": {"ipv4": 16}});
    assert_eq!(refused(create(&node, whole).await), "invalid_argument");
    for wrong in [
        json!({"type": "IP_TYPE_UNSPECIFIED"}),
        json!({"addressFamily": "IP_ADDRESS_FAMILY_UNSPECIFIED"}),
        json!({"addressFamily": "IP_ADDRESS_FAMILY_V6"}),
        json!({"ip": "10.9.9.9"}),
        json!({"network": "super"}),
    ] {
        let mut body = json!({"network": child, "project": project});
        let fields = wrong.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(fields);
        let made = call(&node, &token, "api.v2.IPService/Create", body).await;
        assert_eq!(refused(made), "invalid_argument", "{wrong}");
    }
    let wanted = json!({"network": child, "project": project});
    let made = call(&node, &token, "api.v2.IPService/Create", wanted.clone()).await;
    let mut again = wanted;
    again["ip"] = made.unwrap()["ip"]["ip"].clone();
    let made = call(&node, &token, "api.v2.IPService/Create", again).await;
    assert_eq!(refused(made), "invalid_argument", "taken");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn super_networks_without_a_partition_and_of_a_project() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let anywhere = json!({"id": "anywhere", "type": "NETWORK_TYPE_SUPER",
        "prefixes": ["10.0.0.0/16", "fd00::/48"],
        "defaultChildPrefixLength": {"ipv4": 24, "ipv6": 64}});
    create(&node, anywhere).await.unwrap();
    let mut own = namespaced();
    own["project"] = project.as_str().into();
    own["vrf"] = 4000.into();
    create(&node, own).await.unwrap();
    let mut everybodys = namespaced();
    everybodys["id"] = "of-all".into();
    everybodys["vrf"] = 4001.into();
    assert_eq!(refused(create(&node, everybodys).await), "invalid_argument");
    let child = json!({"project": project, "parentNetwork": "spaces"});
    let child = call(&node, &token, "api.v2.NetworkService/Create", child).await;
    assert_eq!(child.unwrap()["network"]["vrf"], 4000);
    for (family, count) in [("V4", 3), ("V6", 1), ("DUAL_STACK", 1)] {
        let family = format!("NETWORK_ADDRESS_FAMILY_{family}");
        let query = json!({"query": {"addressFamily": family}});
        let listed = admin(&node, "admin.v2.NetworkService/List", query).await;
        let listed = listed.unwrap()["networks"].as_array().unwrap().len();
        assert_eq!(listed, count, "{family}");
    }
    node.stop().await;
}
