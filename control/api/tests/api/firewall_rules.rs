//! Firewall rules from outside, over gRPC.

use mesh::firewall_rules_service_client::FirewallRulesServiceClient;
use mesh::operator_rules_service_client::OperatorRulesServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use serde_json::{Value, json};
use tonic::Code;

use crate::node::{Node, wanted_machine};
use crate::raw_http::{JSON, post};

/// A data centre with an external network and an image for firewalls.
pub(crate) async fn site(node: &Node) {
    node.data_centre().await;
    let mut image = crate::node::debian();
    image.id = "firewall-3.0.1".into();
    image.features = vec![api::ImageFeature::Firewall.into()];
    let create = admin::ImageServiceCreateRequest { image: Some(image) };
    let mut images = admin::image_service_client::ImageServiceClient::new(node.as_admin());
    images.create(create).await.unwrap();
    let mut networks = admin::network_service_client::NetworkServiceClient::new(node.as_admin());
    for (id, kind, prefix, vrf) in [
        (
            "internet",
            api::NetworkType::External,
            "192.0.2.0/24",
            Some(100),
        ),
        ("underlay", api::NetworkType::Underlay, "10.1.0.0/24", None),
    ] {
        let request = admin::NetworkServiceCreateRequest {
            id: Some(id.into()),
            partition: Some("lab".into()),
            r#type: kind.into(),
            prefixes: vec![prefix.into()],
            vrf,
            ..Default::default()
        };
        networks.create(request).await.unwrap();
    }
}

/// Allocates machine `number` as a firewall of the project.
pub(crate) async fn firewall(node: &Node, token: &str, project: &str, network: &str) -> String {
    node.waiting_machine(1).await;
    let wanted = wanted_firewall(project, network);
    let wire = node.wire(Some(token));
    let mut machines = api::machine_service_client::MachineServiceClient::new(wire);
    let made = machines.create(wanted).await.unwrap().into_inner();
    made.machine.unwrap().uuid
}

/// The request for a firewall between a network and the internet.
pub(crate) fn wanted_firewall(project: &str, network: &str) -> api::MachineServiceCreateRequest {
    let mut wanted = wanted_machine(project, network, "fw");
    wanted.image = "firewall-3".into();
    wanted.allocation_type = api::MachineAllocationType::Firewall.into();
    wanted.networks.push(api::MachineAllocationNetwork {
        network: "internet".into(),
        ips: Vec::new(),
    });
    wanted
}

pub(crate) fn rule(name: &str, port: u32) -> mesh::FirewallRule {
    mesh::FirewallRule {
        name: name.into(),
        ports: vec![mesh::FirewallPorts {
            port: Some(port),
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub(crate) fn egress(rules: Vec<mesh::FirewallRule>) -> Option<mesh::FirewallRuleContent> {
    Some(mesh::FirewallRuleContent {
        cwnp: Some(mesh::FirewallPolicyPart {
            egress: rules,
            ingress: vec![],
        }),
        ..Default::default()
    })
}

fn drop_smtp() -> Option<mesh::FirewallRuleContent> {
    let rule = mesh::FirewallRule {
        action: Some("drop".into()),
        ..rule("no-smtp", 25)
    };
    Some(mesh::FirewallRuleContent {
        firewall: Some(mesh::FirewallRulePart {
            rules: vec![rule],
            ..Default::default()
        }),
        ..Default::default()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_writes_its_rules_and_no_others() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let (others, other) = node.tenant("other").await;
    let network = node.network(&token, &project).await;
    let firewall = firewall(&node, &token, &project, &network).await;
    let mut tenant = FirewallRulesServiceClient::new(node.wire(Some(&token)));
    let set = |port: u32, expected: Option<u64>| mesh::FirewallRulesServiceSetRequest {
        project: project.clone(),
        firewall: firewall.to_uppercase(),
        expected_revision: expected,
        comment: "first".into(),
        content: egress(vec![rule("web", port)]),
        ..Default::default()
    };
    let made = tenant.set(set(80, Some(0))).await.unwrap().into_inner();
    let made = made.rules.unwrap();
    assert_eq!((made.revision, made.owner.as_str()), (1, "tenant"));
    assert_eq!((made.author.as_str(), made.objects), ("acme", 1));
    assert_eq!(made.firewall, firewall, "its one spelling");
    let stale = tenant.set(set(81, Some(0))).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    let wrong = tenant.set(set(0, None)).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    let message = wrong.message();
    assert!(
        message.contains("cwnp egress/web: ports[0].port"),
        "{message}"
    );
    tenant.set(set(81, Some(1))).await.unwrap();

    let history = mesh::FirewallRulesServiceListHistoryRequest {
        project: project.clone(),
        firewall: firewall.clone(),
        ..Default::default()
    };
    let revisions = tenant
        .list_history(history)
        .await
        .unwrap()
        .into_inner()
        .revisions;
    let numbers: Vec<u64> = revisions.iter().map(|rules| rules.revision).collect();
    assert_eq!(numbers, [2, 1]);
    let back = mesh::FirewallRulesServiceRollBackRequest {
        project: project.clone(),
        firewall: firewall.clone(),
        revision: 1,
        ..Default::default()
    };
    let back = tenant
        .roll_back(back)
        .await
        .unwrap()
        .into_inner()
        .rules
        .unwrap();
    assert_eq!((back.revision, back.rolled_back_to), (3, 1));

    // Another project sees neither the firewall nor its rules.
    let mut stranger = FirewallRulesServiceClient::new(node.wire(Some(&other)));
    let get = |project: &str| mesh::FirewallRulesServiceGetRequest {
        project: project.to_owned(),
        firewall: firewall.clone(),
        ..Default::default()
    };
    for project in [&project, &others] {
        let unseen = stranger.get(get(project)).await.unwrap_err();
        assert_eq!(unseen.code(), Code::NotFound, "{project}");
    }
    let mut foreign = set(80, None);
    foreign.project.clone_from(&others);
    let refused = stranger.set(foreign).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let seen = tenant.get(get(&project)).await.unwrap().into_inner();
    assert_eq!(seen.firewalls.len(), 1);
    assert_eq!(seen.firewalls[0].applied_revision, 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_rules_decide_first_and_explain_says_so() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let firewall = firewall(&node, &token, &project, &network).await;
    let mut tenant = FirewallRulesServiceClient::new(node.wire(Some(&token)));
    let mut operator = OperatorRulesServiceClient::new(node.as_admin());
    let drop = mesh::OperatorRulesServiceSetRequest {
        firewall: firewall.clone(),
        content: drop_smtp(),
        ..Default::default()
    };
    let mut intruder = OperatorRulesServiceClient::new(node.wire(Some(&token)));
    let refused = intruder.set(drop.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    operator.set(drop).await.unwrap();
    let all = mesh::FirewallRulesServiceSetRequest {
        project: project.clone(),
        network: network.clone(),
        content: egress(vec![mesh::FirewallRule {
            name: "all".into(),
            ..Default::default()
        }]),
        ..Default::default()
    };
    tenant.set(all).await.unwrap();
    let explain = |from: &str, port: u32| mesh::FirewallRulesServiceGetExplanationRequest {
        project: project.clone(),
        firewall: firewall.clone(),
        from: from.into(),
        to: "198.51.100.1".into(),
        port,
        ..Default::default()
    };
    for (from, port, accepted, object) in [
        ("10.128.0.5", 25, false, "firewall rules/no-smtp"),
        ("10.128.0.5", 443, true, "cwnp egress/all"),
        ("192.0.2.9", 443, false, ""),
    ] {
        let answer = tenant.get_explanation(explain(from, port)).await.unwrap();
        let found = answer.into_inner().explanation.unwrap();
        assert_eq!(
            (found.accepted, found.object.as_str()),
            (accepted, object),
            "{from} {port}"
        );
        let owner = found.rules.map(|rules| rules.owner).unwrap_or_default();
        let wanted = match object {
            "" => "",
            "cwnp egress/all" => "tenant",
            _ => "operator",
        };
        assert_eq!(owner, wanted, "{}", found.reason);
    }
    // The firewall's own addresses and the underlay are behind no rule.
    for (to, place) in [
        ("192.0.2.1", "an address of the firewall itself"),
        ("10.1.0.77", "in the underlay underlay"),
    ] {
        let request = mesh::FirewallRulesServiceGetExplanationRequest {
            to: to.into(),
            ..explain("10.128.0.5", 443)
        };
        let answer = tenant.get_explanation(request).await.unwrap();
        let found = answer.into_inner().explanation.unwrap();
        assert!(found.decided_by_input && !found.accepted, "{to}");
        assert!(found.reason.contains(place), "{}", found.reason);
        assert_eq!((found.object.as_str(), found.output.as_str()), ("", ""));
    }
    let sets = operator
        .list(mesh::OperatorRulesServiceListRequest {})
        .await
        .unwrap();
    assert_eq!(sets.into_inner().rules.len(), 2);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_request_changes_no_rules() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let bearer = format!("Bearer {token}");
    let call = async |method: &str, extra: (&str, Value)| {
        let mut body = json!({ "project": &project, "network": &network });
        body[extra.0] = extra.1;
        let path = format!("/metalmesh.admin.v1.FirewallRulesService/{method}");
        let headers = [JSON, ("authorization", bearer.as_str())];
        let answer = post(&node, &path, &headers, body.to_string().into_bytes()).await;
        (answer.status, answer.json())
    };
    let rules = |field: &str| {
        let rule = json!({ "name": "one", field: [{ "cidr": "10.9.9.9/32" }] });
        ("content", json!({ "cwnp": { "egress": [rule] } }))
    };
    let (status, wrong) = call("Set", rules("too")).await;
    assert_eq!(status, 400, "{wrong}");
    let message = wrong["message"].as_str().unwrap();
    assert!(message.contains("content.cwnp.egress[0].too"), "{message}");
    let none = call("Get", ("owner", "tenant".into())).await;
    assert_eq!(none.0, 404, "{}", none.1);
    let (status, made) = call("Set", rules("to")).await;
    assert_eq!(status, 200, "{made}");
    // A project removes its own set alone: there is no owner to name.
    let (status, wrong) = call("Remove", ("owner", "operator".into())).await;
    assert_eq!(status, 400, "{wrong}");
    let (status, kept) = call("Get", ("owner", "tenant".into())).await;
    assert_eq!(status, 200, "{kept}");
    assert_eq!(kept["rules"]["revision"], "1");
    node.stop().await;
}
