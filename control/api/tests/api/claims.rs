//! Claims over the API: the user stories of projects that claim hosts.

use control_state::{AuditEntry, BmcAction};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::pool_service_client::PoolServiceClient;
use proto_public::metalmesh::tenant::v1 as tenant;
use serde_json::json;
use tonic::{Code, Streaming};

use crate::callers::call_with;
use crate::claiming::*;
use crate::node::Node;
use crate::watching::PATIENCE;

/// "As a user I would like to execute a workload on an arbitrary server": bind, look at the host,
/// give it an image, stop and start it, reboot it, and give it back.
#[tokio::test(flavor = "multi_thread")]
async fn a_simple_workload_on_a_claimed_host() {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    let medium = [("infra-kind", "medium")];
    for (number, labels) in [
        (1, [("infra-kind", "medium"), ("shelf", "7")]),
        (2, [("infra-kind", "large"), ("shelf", "8")]),
    ] {
        let machine = node.waiting_machine(number).await;
        add_host(&node, &machine, &labels).await;
    }
    let machine = uuid::Uuid::from_u128(1).to_string();
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let claim = create(&mut claims, &project, "web-1", asking(&medium)).await;
    let status = claim.status.clone().unwrap();
    assert_eq!((status.state.as_str(), status.epoch), ("bound", 1));
    let host = status.host.unwrap();
    assert_eq!(host.labels, owned(&medium), "the shelf is not published");
    assert_eq!(host.nics[0].mac, "02:00:00:00:00:01");
    assert_eq!((host.health.as_str(), host.gpus.len()), ("alive", 0));
    assert_eq!(
        (host.size.as_str(), host.partition.as_str()),
        ("small", "lab")
    );

    let mut spec = installing(&medium, &network);
    spec.user_data = Some("I2Nsb3VkLWNvbmZpZw==".into());
    update(&mut claims, &claim, spec.clone()).await;
    assert_eq!(get(&mut claims, &claim).await.state, "provisioning");
    node.installed_claim(&machine).await;
    let status = get(&mut claims, &claim).await;
    assert_eq!(status.state, "active");
    assert!(condition(&status, "Ready").status);
    let address = &status.addresses[0];
    assert_eq!(
        (address.r#type.as_str(), address.address.as_str()),
        ("InternalIP", "10.128.0.1")
    );
    assert_eq!(status.user_data_sha256.len(), 64);

    // Nobody sends user data back that is never read.
    spec.user_data = None;
    for (is_on, action) in [(false, BmcAction::PowerOff), (true, BmcAction::PowerOn)] {
        spec.powered_on = is_on;
        update(&mut claims, &claim, spec.clone()).await;
        node.bmc_obeys(action).await;
    }
    for _ in 0..2 {
        let request = tenant::ClaimServiceRebootRequest {
            project: project.clone(),
            claim: "web-1".into(),
            expected_epoch: Some(1),
            request: "once".into(),
            mode: String::new(),
        };
        claims.reboot(request).await.unwrap();
    }
    node.bmc_obeys(BmcAction::PowerReset).await;
    let reboots = get(&mut claims, &claim).await.reboots;
    assert_eq!(reboots.len(), 1);
    assert!(reboots[0].ended_at.is_some() && reboots[0].error.is_empty());

    // "When I destroy the host, the association is broken and another user can take over."
    let (rivals, foreign) = node.tenant("rival").await;
    let mut theirs = Claims::new(node.wire(Some(&foreign)));
    let next = create(&mut theirs, &rivals, "web-1", asking(&medium)).await;
    let waiting = next.status.clone().unwrap();
    let reason = (waiting.pending_reason.as_str(), waiting.matching);
    assert_eq!(reason, ("AllBusy", 1));
    assert_eq!(delete(&mut claims, &claim).await.state, "releasing");
    assert_eq!(get(&mut theirs, &next).await.state, "pending", "not wiped");
    node.reclaimed(1).await;
    assert_eq!(get(&mut claims, &claim).await.state, "gone");
    let taken = get(&mut theirs, &next).await;
    assert_eq!((taken.state.as_str(), taken.epoch), ("bound", 2));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_again_and_a_dry_run_leaves_nothing() {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    let machine = node.waiting_machine(1).await;
    add_host(&node, &machine, &[]).await;
    let (project, token) = node.tenant("acme").await;
    let mut claims = Claims::new(node.wire(Some(&token)));

    let mut dry = proto_public::method("/metalmesh.tenant.v1.ClaimService/Create")
        .unwrap()
        .clone();
    dry.path = format!("/dry-run{}", dry.path);
    let body = json!({"project": project, "name": "web-1", "spec": {}});
    let (code, message) = call_with(&node, &dry, Some(&token), body).await;
    assert_eq!(code, "", "{message}");
    let all = tenant::ClaimServiceListRequest {
        project: project.clone(),
        ..Default::default()
    };
    let found = claims.list(all.clone()).await.unwrap().into_inner();
    assert_eq!(found.claims, []);

    let first = create(&mut claims, &project, "web-1", asking(&[])).await;
    let again = create(&mut claims, &project, "web-1", asking(&[])).await;
    assert_eq!(first.uuid, again.uuid);
    let other = creation(&project, "web-1", asking(&[("kind", "other")]));
    let refused = claims.create(other).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");

    // An order for an earlier binding, or an earlier reading, is refused.
    let stale = tenant::ClaimServiceDeleteRequest {
        project: project.clone(),
        claim: "web-1".into(),
        expected_epoch: Some(7),
        ..Default::default()
    };
    claims.delete(stale).await.unwrap_err();
    let stale = tenant::ClaimServiceUpdateRequest {
        project: project.clone(),
        claim: "web-1".into(),
        expected_generation: Some(7),
        spec: Some(asking(&[])),
        ..Default::default()
    };
    claims.update(stale).await.unwrap_err();
    let found = claims.list(all).await.unwrap().into_inner();
    assert_eq!(found.claims.len(), 1);
    assert_eq!(get(&mut claims, &first).await.state, "bound");
    node.stop().await;
}

/// The next message of a watch that is no bookmark.
pub(crate) async fn told(
    watch: &mut Streaming<tenant::ClaimServiceWatchResponse>,
) -> tenant::ClaimServiceWatchResponse {
    loop {
        let next = tokio::time::timeout(PATIENCE, watch.message()).await;
        let message = next.expect("no message came in time").unwrap().unwrap();
        if message.listed || !message.changes.is_empty() {
            return message;
        }
    }
}

fn only_change(message: tenant::ClaimServiceWatchResponse) -> tenant::ClaimChange {
    let [change] = <[_; 1]>::try_from(message.changes).unwrap();
    change
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_follows_its_claims() {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    let (project, token) = node.tenant("acme").await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let request = tenant::ClaimServiceWatchRequest {
        project: project.clone(),
        ..Default::default()
    };
    let mut watch = claims.watch(request).await.unwrap().into_inner();
    assert!(told(&mut watch).await.listed);
    let claim = create(&mut claims, &project, "web-1", asking(&[])).await;
    let created = only_change(told(&mut watch).await);
    assert_eq!(
        (created.r#type.as_str(), created.uuid),
        ("created", claim.uuid)
    );
    // A host comes: the claim is told to be bound, and nothing else is told.
    let machine = node.waiting_machine(1).await;
    add_host(&node, &machine, &[]).await;
    let bound = loop {
        let change = only_change(told(&mut watch).await);
        assert_eq!(change.r#type, "changed");
        let status = change.claim.unwrap().status.unwrap();
        if status.state != "pending" {
            break status;
        }
    };
    assert_eq!(bound.state, "bound");
    assert!(!format!("{bound:?}").contains(&machine));
    node.stop().await;
}

/// An administrator's hold keeps a host off whatever its project says, and ends by itself.
#[tokio::test(flavor = "multi_thread")]
async fn holds_are_independent() {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    let machine = node.waiting_machine(1).await;
    add_host(&node, &machine, &[]).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let spec = installing(&[], &network);
    let claim = create(&mut claims, &project, "web-1", spec).await;
    node.installed_claim(&machine).await;
    let mut pools = PoolServiceClient::new(node.as_admin());
    let hold = mesh::PoolServiceSetHostHoldRequest {
        machine: machine.clone(),
        actor: "maintenance".into(),
        key: "fan".into(),
        reason: String::new(),
    };
    pools.set_host_hold(hold).await.unwrap();
    node.bmc_obeys(BmcAction::PowerOff).await;
    let own = tenant::ClaimServiceSetHoldRequest {
        project: project.clone(),
        claim: "web-1".into(),
        expected_epoch: Some(1),
        key: "fan".into(),
        reason: String::new(),
    };
    claims.set_hold(own).await.unwrap();
    let own = tenant::ClaimServiceClearHoldRequest {
        project,
        claim: "web-1".into(),
        expected_epoch: Some(1),
        key: "fan".into(),
    };
    claims.clear_hold(own).await.unwrap();
    let status = get(&mut claims, &claim).await;
    assert!(status.held_by_operator && status.holds.is_empty());
    let ended = mesh::PoolServiceClearHostHoldRequest {
        machine,
        actor: "maintenance".into(),
        key: "fan".into(),
    };
    pools.clear_host_hold(ended).await.unwrap();
    node.bmc_obeys(BmcAction::PowerOn).await;
    assert!(!get(&mut claims, &claim).await.held_by_operator);
    node.stop().await;
}

/// A claim, a reboot and a release are on record with their user, without the user data.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_with_a_claim_is_on_record() {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    let machine = node.waiting_machine(1).await;
    add_host(&node, &machine, &[]).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let mut spec = installing(&[], &network);
    spec.user_data = Some("I2Nsb3VkLWNvbmZpZw==".into());
    let claim = create(&mut claims, &project, "web-1", spec).await;
    node.installed_claim(&machine).await;
    let request = tenant::ClaimServiceRebootRequest {
        project: project.clone(),
        claim: "web-1".into(),
        expected_epoch: Some(1),
        request: "once".into(),
        mode: String::new(),
    };
    claims.reboot(request).await.unwrap();
    delete(&mut claims, &claim).await;
    let kept = node.store.read_local(|tables| {
        let all = tables.all::<AuditEntry>();
        let own = all.filter(|entry| entry.project.as_deref() == Some(project.as_str()));
        own.map(|entry| AuditEntry::clone(entry))
            .collect::<Vec<_>>()
    });
    let kept = kept.unwrap();
    for name in ["Create", "Reboot", "Delete"] {
        let method = format!("metalmesh.tenant.v1.ClaimService/{name}");
        let mut of_method = kept.iter().filter(|entry| entry.method.ends_with(&method));
        let entry = of_method
            .next()
            .unwrap_or_else(|| panic!("{name}: {kept:?}"));
        assert_eq!((entry.user.as_str(), entry.result_code), ("acme", Some(0)));
        let body = entry.body.as_deref().unwrap_or_default();
        assert!(body.contains("web-1"), "{body}");
        assert!(!body.contains("I2Nsb3VkLWNvbmZpZw"), "{body}");
    }
    node.stop().await;
}
