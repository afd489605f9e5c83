//! Policies with names: a firewall needs a name server to resolve them with.

use mesh::firewall_rules_service_client::FirewallRulesServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::firewall_rules::{egress, firewall, rule, site};
use crate::node::Node;

/// Sets the name servers of the partition. 0.0.0.0 removes them.
async fn set_dns(node: &Node, ip: &str) {
    let update = admin::PartitionServiceUpdateRequest {
        id: "lab".into(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        dns_servers: vec![api::DnsServer { ip: ip.into() }],
        ..Default::default()
    };
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    partitions.update(update).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn names_need_a_name_server_of_the_partition() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let firewall = firewall(&node, &token, &project, &network).await;
    let mut tenant = FirewallRulesServiceClient::new(node.wire(Some(&token)));
    let api = mesh::FirewallRule {
        to_fqdns: vec![mesh::FirewallNames {
            match_name: Some("api.example.com".into()),
            ..Default::default()
        }],
        ..rule("api", 443)
    };
    // Through the firewall, and through the network that it is in.
    let set = |firewall: &str, network: &str| mesh::FirewallRulesServiceSetRequest {
        project: project.clone(),
        firewall: firewall.to_owned(),
        network: network.to_owned(),
        content: egress(vec![api.clone()]),
        ..Default::default()
    };
    for request in [set(&firewall, ""), set("", &network)] {
        let refused = tenant.set(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let message = refused.message();
        for part in [
            "cwnp egress/api: toFQDNs",
            &firewall,
            "set dns_servers of the partition",
            "metalmesh partition update lab --dns",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    set_dns(&node, "192.0.2.53").await;
    tenant.set(set(&firewall, "")).await.unwrap();
    let explain = mesh::FirewallRulesServiceGetExplanationRequest {
        project: project.clone(),
        firewall: firewall.clone(),
        from: "10.128.0.5".into(),
        to: "198.51.100.1".into(),
        port: 443,
        ..Default::default()
    };
    let answer = tenant.get_explanation(explain.clone()).await.unwrap();
    let found = answer.into_inner().explanation.unwrap();
    assert_eq!(found.undecided, ["cwnp egress/api"]);
    assert_eq!(found.reason, "no rule accepts it");
    // Without a server the firewall refuses the policy.
    set_dns(&node, "0.0.0.0").await;
    let answer = tenant.get_explanation(explain).await.unwrap();
    let found = answer.into_inner().explanation.unwrap();
    assert_eq!(found.undecided, [""; 0]);
    assert!(found.reason.contains("no name server"), "{}", found.reason);
    assert!(found.reason.contains("dns_servers"), "{}", found.reason);
    node.stop().await;
}
