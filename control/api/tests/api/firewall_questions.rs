//! Counters of firewalls, and rules that they are asked about, over gRPC.

use control_presence::{
    CandidateEffect, CounterKind, CounterNumber, FirewallNumbers, ReportOutcome,
};
use control_state::Machine;
use mesh::firewall_rules_service_client::FirewallRulesServiceClient;
use mesh::operator_rules_service_client::OperatorRulesServiceClient;
use prost::Message;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::WatchChangeType;
use proto_types::{AllocationId, MachineId, Timestamp};
use tonic::Code;

use crate::firewall_rules::{egress, firewall, rule, site};
use crate::node::Node;
use crate::watching::{brief, listed, news, of_project};

fn allocation(node: &Node, machine: MachineId) -> AllocationId {
    let read = node.store.read_local(|tables| {
        let machine = tables.get::<Machine>(&machine).cloned();
        machine.and_then(|machine| machine.allocation.as_ref().map(|found| found.id))
    });
    read.unwrap().unwrap()
}

fn numbers(allocation: AllocationId, counters: &[(CounterKind, &str)]) -> FirewallNumbers {
    let counters = counters.iter().map(|(kind, name)| CounterNumber {
        kind: *kind,
        name: (*name).to_owned(),
        packets: 7,
        bytes: 700,
    });
    FirewallNumbers {
        allocation,
        at: Timestamp::from_ms(1_000_000),
        read_at: Timestamp::from_ms(999_000),
        counters: counters.collect(),
        rules: 5,
        left_out: 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_shown_by_rule_and_set() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let (others, other) = node.tenant("other").await;
    let network = node.network(&token, &project).await;
    let firewall = firewall(&node, &token, &project, &network).await;
    let mut tenant = FirewallRulesServiceClient::new(node.wire(Some(&token)));
    let set = mesh::FirewallRulesServiceSetRequest {
        project: project.clone(),
        firewall: firewall.clone(),
        content: egress(vec![rule("web", 80)]),
        ..Default::default()
    };
    tenant.set(set).await.unwrap();
    let ask = |project: &str| mesh::FirewallRulesServiceGetStatisticsRequest {
        project: project.to_owned(),
        firewall: firewall.clone(),
    };
    let nothing = tenant.get_statistics(ask(&project)).await.unwrap();
    let nothing = nothing.into_inner().statistics.unwrap();
    assert_eq!((nothing.reported_at, nothing.rules), (None, vec![]));

    let machine: MachineId = firewall.parse().unwrap();
    let counted = [
        (CounterKind::Total, "dropped"),
        (CounterKind::Accept, "cwnp/egress/web/0"),
        (CounterKind::Drop, "cwnp/egress/gone/0"),
    ];
    let numbers = numbers(allocation(&node, machine), &counted);
    let outcome = node.presence.firewalls().keep(machine, numbers);
    assert_eq!(outcome, ReportOutcome::Kept);
    let found = tenant.get_statistics(ask(&project)).await.unwrap();
    let found = found.into_inner().statistics.unwrap();
    assert_eq!(
        (found.project.as_str(), found.rules_in_force),
        (&*project, 5)
    );
    assert_eq!(found.reported_at.unwrap().seconds, 1_000);
    let total = &found.counters[0];
    assert_eq!(
        (total.kind.as_str(), total.name.as_str()),
        ("total", "dropped")
    );
    let web = &found.rules[0];
    assert_eq!(
        (web.object.as_str(), web.owner.as_str()),
        ("cwnp egress/web", "tenant")
    );
    assert_eq!((&web.firewall, web.packets), (&firewall, 7));
    let gone = &found.rules[1];
    assert_eq!((gone.object.as_str(), gone.action.as_str()), ("", "drop"));

    let mut stranger = FirewallRulesServiceClient::new(node.wire(Some(&other)));
    for project in [&project, &others] {
        let unseen = stranger.get_statistics(ask(project)).await.unwrap_err();
        assert_eq!(unseen.code(), Code::NotFound, "{project}");
    }
    let mut operator = OperatorRulesServiceClient::new(node.as_admin());
    let ask = mesh::OperatorRulesServiceGetStatisticsRequest {
        firewall: firewall.clone(),
    };
    let same = operator.get_statistics(ask).await.unwrap().into_inner();
    assert_eq!(same.statistics, Some(found));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_tried_on_the_firewall_that_runs() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let firewall = firewall(&node, &token, &project, &network).await;
    let mut tenant = FirewallRulesServiceClient::new(node.wire(Some(&token)));
    // The set of the network is for the same firewall.
    let request = |port: u32| mesh::FirewallRulesServiceTryRequest {
        project: project.clone(),
        network: network.clone(),
        content: egress(vec![rule("web", port)]),
        ..Default::default()
    };
    let wrong = tenant.r#try(request(0)).await.unwrap_err();
    assert_eq!(
        wrong.code(),
        Code::InvalidArgument,
        "control checks it first"
    );
    let away = tenant.r#try(request(80)).await.unwrap().into_inner();
    let [effect] = away.firewalls.as_slice() else {
        panic!("{away:?}");
    };
    assert_eq!(effect.firewall, firewall);
    assert!(effect.error.contains("no session"), "{}", effect.error);

    let machine: MachineId = firewall.parse().unwrap();
    let firewalls = node.presence.firewalls();
    let mut inbox = firewalls.open_inbox(machine, allocation(&node, machine));
    let agent = async {
        let asked = inbox.next().await.unwrap();
        assert_eq!(asked.set.to_string(), format!("network/{network}/tenant"));
        let effect = CandidateEffect {
            added: 1,
            rules: 3,
            parts: vec!["networks".into()],
            ..CandidateEffect::default()
        };
        firewalls.take_effect(machine, asked.id, effect);
    };
    let (tried, ()) = tokio::join!(tenant.r#try(request(80)), agent);
    let tried = tried.unwrap().into_inner().firewalls;
    assert_eq!((tried[0].error.as_str(), tried[0].added), ("", 1));
    assert_eq!(
        (tried[0].rules, &*tried[0].parts),
        (3, &["networks".to_owned()][..])
    );
    let list = mesh::FirewallRulesServiceListRequest { project };
    let written = tenant.list(list).await.unwrap().into_inner().rules;
    assert_eq!(written, [], "nothing is written");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_watches_its_sets_without_their_contents() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let (others, other) = node.tenant("other").await;
    let network = node.network(&token, &project).await;
    let names = ["firewall-rules"];
    let mut own = of_project(node.wire(Some(&token)), &project, &names)
        .await
        .unwrap();
    let mut theirs = of_project(node.wire(Some(&other)), &others, &names)
        .await
        .unwrap();
    assert!(listed(&mut own).await.0.is_empty());
    assert!(listed(&mut theirs).await.0.is_empty());
    let mut tenant = FirewallRulesServiceClient::new(node.wire(Some(&token)));
    let set = mesh::FirewallRulesServiceSetRequest {
        project: project.clone(),
        network: network.clone(),
        content: egress(vec![rule("web", 80)]),
        ..Default::default()
    };
    tenant.set(set).await.unwrap();
    let event = news(&mut own).await;
    let id = format!("network/{network}/tenant");
    let kind = "firewall-rules";
    assert_eq!(
        brief(&event),
        [(WatchChangeType::Created, kind, id.as_str())]
    );
    let object = event.changes[0].object.as_ref().unwrap();
    let shown = mesh::FirewallRules::decode(&*object.value).unwrap();
    assert_eq!((shown.revision, shown.objects, shown.content), (1, 1, None));
    // The next that the other project hears is its own.
    let network = node.network(&other, &others).await;
    let mut stranger = FirewallRulesServiceClient::new(node.wire(Some(&other)));
    let set = mesh::FirewallRulesServiceSetRequest {
        project: others.clone(),
        network: network.clone(),
        content: egress(vec![rule("web", 80)]),
        ..Default::default()
    };
    stranger.set(set).await.unwrap();
    let id = format!("network/{network}/tenant");
    assert_eq!(
        brief(&news(&mut theirs).await),
        [(WatchChangeType::Created, kind, id.as_str())]
    );
    node.stop().await;
}
