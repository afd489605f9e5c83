//! Every method as every sort of caller, over a real socket. What each may expect is the table of
//! `control-authz`, which comes from the contract's options; a method that is not in the table, or
//! that nobody serves, fails here.

use std::collections::BTreeMap;

use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::project_component_service_client::ProjectComponentServiceClient;
use proto_public::{Method, Scope, methods};
use serde_json::json;

use crate::callers::*;
use crate::node::{Node, wanted_machine};

/// Who may do what, by method and caller.
const TABLE: &str = include_str!("../../../authz/tests/who.txt");
/// Methods of the published contract.
const PUBLISHED: usize = 152;
/// What a call leaves behind may be in the way of the next: these come last, in this order.
const LAST: [&str; 4] = [
    "/metalstack.api.v2.ProjectService/Leave",
    "/metalstack.api.v2.TenantService/Leave",
    "/metalstack.api.v2.ProjectService/Delete",
    "/metalstack.api.v2.TenantService/Delete",
];
/// The outcome that the table has for a method and caller.
fn table() -> (Vec<&'static str>, BTreeMap<&'static str, Vec<&'static str>>) {
    let mut lines = TABLE.lines();
    let names = lines.next().unwrap().split_whitespace().skip(2).collect();
    let rows = lines.map(|line| {
        let mut words = line.split_whitespace();
        (words.next().unwrap(), words.collect())
    });
    (names, rows.collect())
}

/// As the table says it. Behind the gate everything may be said but that it is not served.
fn outcome(code: &str) -> &'static str {
    match code {
        "unauthenticated" => "401",
        "permission_denied" => "403",
        "not_found" => "404",
        "unimplemented" | "unknown" | "internal" => "broken",
        _ => "yes",
    }
}

/// All methods, what is refused before what is done, and what ends something last.
fn in_order(expected: impl Fn(&Method) -> &'static str) -> Vec<&'static Method> {
    let mut all: Vec<_> = methods().iter().collect();
    all.sort_by_key(|it| {
        let last = LAST.iter().position(|last| *last == it.path);
        (expected(it) == "yes", last.map_or(0, |at| at + 1))
    });
    all
}

/// Each kind of component: its project's methods by its list, and nothing of another project.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_has_its_project_alone() {
    let node = site().await;
    let (mine, _) = node.tenant("mine").await;
    let (theirs, _) = node.tenant("theirs").await;
    let world = |project: &str| World {
        tenant: "mine".into(),
        project: project.to_owned(),
        machine: ABSENT.into(),
    };
    let mut outside = 0;
    for kind in 1..=6 {
        let kind = mesh::ProjectComponentKind::try_from(kind).unwrap();
        let (id, token) = component(&node, &mine, kind).await;
        for method in methods() {
            let Scope::Project(_) = method.scope else {
                continue;
            };
            let (foreign, said) = call(&node, method, Some(&token), &world(&theirs)).await;
            assert_eq!(foreign, "not_found", "{kind:?} {}: {said}", method.path);
            let (absent, also) = call(&node, method, Some(&token), &World::absent()).await;
            assert_eq!(absent, "not_found", "{kind:?} {}", method.path);
            assert_eq!(said.replace(&theirs, "<it>"), also.replace(ABSENT, "<it>"));
            outside += 1;
        }
        let list = proto_public::method("/metalstack.api.v2.MachineService/List").unwrap();
        let (code, said) = call(&node, list, Some(&token), &world(&mine)).await;
        assert_eq!(code, "", "{kind:?}: {said}");
        let mut components = ProjectComponentServiceClient::new(node.as_admin());
        let listed = components
            .list(mesh::ProjectComponentServiceListRequest {
                project: mine.clone(),
            })
            .await
            .unwrap()
            .into_inner();
        assert_eq!(listed.components.len(), 1, "{listed:?}");
        let elsewhere = mesh::ProjectComponentServiceRevokeRequest {
            project: theirs.clone(),
            id: id.clone(),
        };
        let refused = components.revoke(elsewhere).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::NotFound);
        let project = mine.clone();
        let revoke = mesh::ProjectComponentServiceRevokeRequest { project, id };
        components.revoke(revoke).await.unwrap();
        let (code, _) = call(&node, list, Some(&token), &world(&mine)).await;
        assert_eq!(code, "unauthenticated", "{kind:?} is revoked");
    }
    assert!(outside > 100, "{outside}");
    node.stop().await;
}

async fn site() -> Node {
    let node = Node::start().await;
    node.data_centre().await;
    node.waiting_machine(MACHINE).await;
    for user in ["ann", "stranger"] {
        node.tenant(user).await;
    }
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_as_every_caller() {
    let node = site().await;
    let (names, table) = table();
    let published = methods()
        .iter()
        .filter(|it| it.path.starts_with("/metalstack."));
    assert_eq!(published.count(), PUBLISHED);
    let mut wrong = Vec::new();
    let mut calls = 0;
    for (at, name) in names.iter().enumerate() {
        let (world, token) = caller(&node, name).await;
        let of = |method: &Method| {
            let row = table.get(method.path.as_str());
            row.unwrap_or_else(|| panic!("{} is not in who.txt", method.path))[at]
        };
        for method in in_order(of) {
            let (code, message) = call(&node, method, token.as_deref(), &world).await;
            let (expected, got) = (of(method), outcome(&code));
            // Behind the gate, what a call is about may still not be there.
            let fits = expected == got || expected == "yes" && got == "404";
            if !fits {
                wrong.push(format!(
                    "{} as {name}: {expected} expected, {got} came: {code} {message}",
                    method.path
                ));
            }
            calls += 1;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!(
        "{} methods, {} callers, {calls} calls",
        methods().len(),
        names.len()
    );
    node.stop().await;
}

/// Whoever may not see a tenant, project or machine is told the same whether it is there or not.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_and_absent_subjects_look_the_same() {
    let node = site().await;
    let (names, table) = table();
    let mut compared = 0;
    for (at, name) in names.iter().enumerate() {
        let (foreign, token) = caller(&node, name).await;
        let absent = World::absent();
        for method in methods() {
            if table[method.path.as_str()][at] != "404" {
                continue;
            }
            let mut answers = Vec::new();
            for world in [&foreign, &absent] {
                let (code, message) = call(&node, method, token.as_deref(), world).await;
                let subject = world.subject(method).unwrap();
                answers.push((code, message.replace(subject, "<it>")));
            }
            assert_eq!(answers[0], answers[1], "{} as {name}", method.path);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
    println!("{compared} pairs are the same");
    node.stop().await;
}

/// An owner's project is there, but the objects are another's, or nobody's.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_and_absent_objects_look_the_same() {
    let node = site().await;
    let (theirs, owner) = node.tenant("theirs").await;
    let network = node.network(&owner, &theirs).await;
    let (mine, token) = node.tenant("mine").await;
    let address = foreign_address(&node, &owner, &theirs, &network).await;
    let machine = foreign_machine(&node, &owner, &theirs, &network).await;
    let lock = json!({"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"});
    let objects = [
        ("NetworkService/Get", "id", &network, json!({})),
        (
            "NetworkService/Update",
            "id",
            &network,
            json!({"updateMeta": lock}),
        ),
        ("NetworkService/Delete", "id", &network, json!({})),
        ("IPService/Get", "ip", &address, json!({})),
        (
            "IPService/Update",
            "ip",
            &address,
            json!({"updateMeta": lock}),
        ),
        ("IPService/Delete", "ip", &address, json!({})),
        ("MachineService/Get", "uuid", &machine, json!({})),
        (
            "MachineService/Update",
            "uuid",
            &machine,
            json!({"updateMeta": lock}),
        ),
        ("MachineService/Delete", "uuid", &machine, json!({})),
        ("MachineService/GetBMC", "uuid", &machine, json!({})),
        (
            "MachineService/BMCCommand",
            "uuid",
            &machine,
            json!({"command": "MACHINE_BMC_COMMAND_ON"}),
        ),
    ];
    for (name, field, id, more) in objects {
        let path = format!("/metalstack.api.v2.{name}");
        let method = proto_public::method(&path).unwrap();
        let absent = match field {
            "ip" => "10.128.200.200",
            _ => ABSENT,
        };
        let mut answers = Vec::new();
        for id in [id.as_str(), absent] {
            let mut body = more.clone();
            body[field] = id.into();
            body["project"] = mine.as_str().into();
            let (code, message) = call_with(&node, method, Some(&token), body).await;
            assert_eq!(code, "not_found", "{name}: {message}");
            answers.push(message.replace(id, "<it>"));
        }
        assert_eq!(answers[0], answers[1], "{name}");
    }
    node.stop().await;
}

async fn foreign_address(node: &Node, owner: &str, project: &str, network: &str) -> String {
    let mut ips = api::ip_service_client::IpServiceClient::new(node.wire(Some(owner)));
    let request = api::IpServiceCreateRequest {
        project: project.to_owned(),
        network: network.to_owned(),
        ..Default::default()
    };
    let made = ips.create(request).await.unwrap().into_inner();
    made.ip.unwrap().ip
}

async fn foreign_machine(node: &Node, owner: &str, project: &str, network: &str) -> String {
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(owner)));
    let request = wanted_machine(project, network, "web-1");
    let made = machines.create(request).await.unwrap().into_inner();
    made.machine.unwrap().uuid
}
