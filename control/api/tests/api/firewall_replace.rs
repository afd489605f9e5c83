//! Firewalls with their roles, and one that takes the place of another, over gRPC.

use control_state::{FirewallRoutes, Machine, ReportFirewall};
use mesh::firewall_rules_service_client::FirewallRulesServiceClient;
use mesh::operator_rules_service_client::OperatorRulesServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{AllocationId, MachineId};
use tonic::Code;

use crate::firewall_rules::{egress, firewall, rule, site, wanted_firewall};
use crate::node::{Node, Wire};

type Rules = FirewallRulesServiceClient<Wire>;

fn allocation(node: &Node, machine: MachineId) -> AllocationId {
    let read = node.store.read_local(|tables| {
        let machine = tables.get::<Machine>(&machine).cloned();
        machine.and_then(|machine| machine.allocation.as_ref().map(|found| found.id))
    });
    read.unwrap().unwrap()
}

/// Two firewalls of a project between the same networks.
async fn pair(node: &Node, token: &str, project: &str) -> [String; 2] {
    let network = node.network(token, project).await;
    let first = firewall(node, token, project, &network).await;
    node.waiting_machine(2).await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(token)));
    let made = machines.create(wanted_firewall(project, &network)).await;
    let second = made.unwrap().into_inner().machine.unwrap().uuid;
    [first, second]
}

async fn listed(rules: &mut Rules, project: &str) -> Vec<mesh::FirewallStatus> {
    let request = mesh::FirewallRulesServiceListFirewallsRequest {
        project: project.to_owned(),
    };
    rules
        .list_firewalls(request)
        .await
        .unwrap()
        .into_inner()
        .firewalls
}

#[tokio::test(flavor = "multi_thread")]
async fn firewalls_are_shown_with_role_health_and_routes() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let (others, other) = node.tenant("other").await;
    let [first, second] = pair(&node, &token, &project).await;
    let mut tenant = Rules::new(node.wire(Some(&token)));
    let set = mesh::FirewallRulesServiceSetRequest {
        project: project.clone(),
        firewall: first.clone(),
        content: egress(vec![rule("web", 80)]),
        ..Default::default()
    };
    tenant.set(set).await.unwrap();
    let machine: MachineId = first.parse().unwrap();
    let report = ReportFirewall {
        machine,
        allocation: allocation(&node, machine),
        applied_term: 1,
        applied_generation: 7,
        applied_sets: [].into(),
        refused_rules: Vec::new(),
        error: Some("a probe failed".into()),
        agent_version: Some("1.2.3".into()),
        routes: Some(FirewallRoutes {
            wanted: 0,
            observed: None,
            error: Some("vtysh did not answer".into()),
        }),
        update: None,
    };
    node.hardware(report).await;
    node.presence.heard_machine(machine, node.store.now());

    let shown = listed(&mut tenant, &project).await;
    let ids: Vec<&String> = shown.iter().map(|shown| &shown.firewall).collect();
    assert_eq!(ids, [&first, &second]);
    let [own, standby] = shown.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!(
        (own.role.as_str(), own.place, own.healthy),
        ("withdrawn", 0, false)
    );
    assert!(own.reason.contains("does not run yet"), "{}", own.reason);
    assert_eq!(own.agent_version, "1.2.3");
    assert!(own.reported_at.is_some() && own.heard_at.is_some());
    let routes = own.routes.as_ref().unwrap();
    assert_eq!((routes.wanted, routes.observed), (0, None));
    assert!(routes.error.contains("vtysh"), "{}", routes.error);
    let [set] = own.sets.as_slice() else {
        panic!("{own:?}");
    };
    assert_eq!((set.revision, set.applied_revision), (1, 0));
    assert_eq!((&set.firewall, set.owner.as_str()), (&first, "tenant"));
    assert_eq!((standby.place, standby.routes.is_some()), (1, false));

    // Beside the counters, and for the operator.
    let ask = mesh::FirewallRulesServiceGetStatisticsRequest {
        project: project.clone(),
        firewall: first.clone(),
    };
    let counted = tenant.get_statistics(ask).await.unwrap().into_inner();
    assert_eq!(counted.statistics.unwrap().status.as_ref(), Some(own));
    let mut operator = OperatorRulesServiceClient::new(node.as_admin());
    let all = mesh::OperatorRulesServiceListFirewallsRequest {};
    let all = operator.list_firewalls(all).await.unwrap().into_inner();
    assert_eq!(all.firewalls, shown);

    let mut stranger = Rules::new(node.wire(Some(&other)));
    assert_eq!(listed(&mut stranger, &others).await, []);
    let foreign = mesh::FirewallRulesServiceListFirewallsRequest { project };
    let unseen = stranger.list_firewalls(foreign).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firewall_is_replaced_step_by_step() {
    use mesh::FirewallReplacementStep as Step;
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let (others, other) = node.tenant("other").await;
    let [old, new] = pair(&node, &token, &project).await;
    let mut tenant = Rules::new(node.wire(Some(&token)));
    let request = |step: Step| mesh::FirewallRulesServiceReplaceFirewallRequest {
        project: project.clone(),
        firewall: old.clone(),
        by: new.clone(),
        step: step.into(),
    };
    let mut operator = OperatorRulesServiceClient::new(node.as_admin());
    let set = mesh::OperatorRulesServiceSetRequest {
        firewall: old.clone(),
        content: egress(vec![rule("web", 80)]),
        ..Default::default()
    };
    operator.set(set).await.unwrap();

    let unspecified = tenant.replace_firewall(request(Step::Unspecified)).await;
    assert_eq!(unspecified.unwrap_err().code(), Code::InvalidArgument);
    let mut stranger = Rules::new(node.wire(Some(&other)));
    let foreign = mesh::FirewallRulesServiceReplaceFirewallRequest {
        project: others,
        ..request(Step::Prepare)
    };
    let unseen = stranger.replace_firewall(foreign).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound);

    let prepared = tenant
        .replace_firewall(request(Step::Prepare))
        .await
        .unwrap();
    let prepared = prepared.into_inner();
    assert_eq!((&prepared.firewall, prepared.took_over_at), (&old, None));
    let shown = listed(&mut tenant, &project).await;
    let by_id = |id: &str| shown.iter().find(|shown| shown.firewall == id).unwrap();
    assert_eq!(by_id(&old).replaced_by, new);
    assert_eq!(by_id(&new).replaces, old);
    // The operator's rules do not end with the firewall.
    let [copied] = by_id(&new).sets.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!((copied.owner.as_str(), copied.revision), ("operator", 1));

    let refused = tenant.replace_firewall(request(Step::TakeOver)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().starts_with("MM-1219"), "{refused}");
    assert!(refused.message().contains("does not run yet"), "{refused}");

    let undone = tenant.replace_firewall(request(Step::Undo)).await.unwrap();
    assert_eq!(undone.into_inner().firewall, "");
    node.stop().await;
}
