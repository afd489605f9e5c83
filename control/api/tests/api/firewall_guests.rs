//! The operator's rules of a shared network, and what the projects in it see of each other.

use mesh::firewall_rules_service_client::FirewallRulesServiceClient;
use mesh::operator_rules_service_client::OperatorRulesServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::firewall_rules::{egress, rule, site, wanted_firewall};
use crate::node::Node;

/// A network of a project that others may join.
async fn share(node: &Node, project: &str) {
    let mut networks = admin::network_service_client::NetworkServiceClient::new(node.as_admin());
    let request = admin::NetworkServiceCreateRequest {
        id: Some("storage".into()),
        partition: Some("lab".into()),
        project: Some(project.to_owned()),
        r#type: api::NetworkType::ChildShared.into(),
        ..Default::default()
    };
    networks.create(request).await.unwrap();
}

/// The firewall of a project, in the shared network.
async fn join(node: &Node, token: &str, project: &str, number: u128) -> String {
    let network = node.network(token, project).await;
    node.waiting_machine(number).await;
    let mut wanted = wanted_firewall(project, &network);
    wanted.networks.push(api::MachineAllocationNetwork {
        network: "storage".into(),
        ips: Vec::new(),
    });
    let wire = node.wire(Some(token));
    let mut machines = api::machine_service_client::MachineServiceClient::new(wire);
    let made = machines.create(wanted).await.unwrap().into_inner();
    made.machine.unwrap().uuid
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_rules_of_a_shared_network_are_for_guests_too() {
    let node = Node::start().await;
    site(&node).await;
    let (owner, owners_token) = node.tenant("acme").await;
    let (guest, guests_token) = node.tenant("other").await;
    share(&node, &owner).await;
    let own = join(&node, &owners_token, &owner, 1).await;
    let guests = join(&node, &guests_token, &guest, 2).await;
    let mut operator = OperatorRulesServiceClient::new(node.as_admin());
    let set = mesh::OperatorRulesServiceSetRequest {
        network: "storage".into(),
        content: egress(vec![rule("web", 80)]),
        ..Default::default()
    };
    operator.set(set).await.unwrap();

    // The operator sees both firewalls, and the owner of the network its own.
    let ids = |found: Vec<mesh::FirewallRulesOnFirewall>| {
        let mut ids: Vec<String> = found.into_iter().map(|on| on.firewall).collect();
        ids.sort();
        ids
    };
    let get = mesh::OperatorRulesServiceGetRequest {
        network: "storage".into(),
        ..Default::default()
    };
    let seen = operator.get(get).await.unwrap().into_inner();
    let mut both = vec![own.clone(), guests.clone()];
    both.sort();
    assert_eq!(ids(seen.firewalls), both);
    let ask = |project: &str| mesh::FirewallRulesServiceGetRequest {
        project: project.to_owned(),
        network: "storage".into(),
        owner: "operator".into(),
        ..Default::default()
    };
    let mut owners = FirewallRulesServiceClient::new(node.wire(Some(&owners_token)));
    let seen = owners.get(ask(&owner)).await.unwrap().into_inner();
    assert_eq!(ids(seen.firewalls), [own]);
    let mut stranger = FirewallRulesServiceClient::new(node.wire(Some(&guests_token)));
    let unseen = stranger.get(ask(&guest)).await.unwrap_err();
    assert_eq!(
        unseen.code(),
        Code::NotFound,
        "the set is another project's"
    );

    // The guest sees that its firewall gets the set.
    let list = mesh::FirewallRulesServiceListFirewallsRequest { project: guest };
    let listed = stranger.list_firewalls(list).await.unwrap().into_inner();
    let [firewall] = listed.firewalls.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(firewall.firewall, guests);
    let [set] = firewall.sets.as_slice() else {
        panic!("{firewall:?}");
    };
    let shown = (set.network.as_str(), set.owner.as_str(), set.revision);
    assert_eq!(shown, ("storage", "operator", 1));
    node.stop().await;
}
