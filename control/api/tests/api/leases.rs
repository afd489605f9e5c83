//! Owners and lessees of machines over gRPC: who sees and does what.

use control_state::{AuditEntry, BmcAction};
use mesh::WatchChangeType::{Changed, Created, Deleted};
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;
use uuid::Uuid;

use crate::callers::ABSENT;
use crate::lease_parties::{MINUTE_MS, label, plain, set_owner, site};
use crate::node::Node;
use crate::policy::{about, set};
use crate::watching::{brief, listed, news, of_project};

/// The audit trail has a call of the method.
fn is_recorded(node: &Node, method: &str) {
    let is_there = node.store.read_local(|tables| {
        let mut all = tables.all::<AuditEntry>();
        all.any(|record| record.method.ends_with(method))
    });
    assert!(is_there.unwrap(), "{method}");
}

/// The user story of node multi-tenancy: an owner administers its machine, a lessee uses it for a
/// while, and neither needs an administrator for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_leases_its_machine_to_another_project() {
    let node = Node::start().await;
    let ([owner, lessee, stranger], machine, network) = site(&node).await;
    for party in [&owner, &lessee, &stranger] {
        assert_eq!(party.list(&node).await, []);
        let unseen = party.get(&node, &machine).await.unwrap_err();
        let absent = party.get(&node, ABSENT).await.unwrap_err();
        assert_eq!(plain(&unseen, &machine), plain(&absent, ABSENT));
    }
    set_owner(&node, &machine, Some(&owner.project))
        .await
        .unwrap();
    let owned = |relation: &str| vec![(machine.clone(), relation.to_owned())];
    assert_eq!(owner.list(&node).await, owned("owner"));
    assert_eq!(lessee.list(&node).await, []);

    // A stranger learns nothing, whatever it tries.
    let stolen = stranger.grant(&node, &machine, &stranger.project, 90).await;
    let absent = stranger.grant(&node, ABSENT, &lessee.project, 90).await;
    assert_eq!(
        plain(&stolen.unwrap_err(), &machine),
        plain(&absent.unwrap_err(), ABSENT)
    );
    let lease = owner
        .grant(&node, &machine, &lessee.project, 90)
        .await
        .unwrap();
    assert_eq!(
        (&lease.owner, &lease.lessee),
        (&owner.project, &lessee.project)
    );
    assert_eq!(lessee.list(&node).await, owned("lessee"));
    assert_eq!(stranger.list(&node).await, []);

    // The lessee may not do what is the owner's, and is told why.
    let refused = lessee.grant(&node, &machine, &stranger.project, 90).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().starts_with("MM-1234"), "{refused}");
    assert!(refused.message().contains("is the lessee"), "{refused}");

    // The owner may not use it meanwhile, and the stranger not at all.
    let own = node.network(&owner.token, &owner.project).await;
    let used = owner.take(&node, &machine, &own).await.unwrap_err();
    assert!(used.message().starts_with("MM-1230"), "{used}");
    let foreign = stranger.take(&node, &machine, &network).await.unwrap_err();
    let absent = stranger.take(&node, ABSENT, &network).await.unwrap_err();
    assert_eq!(plain(&foreign, &machine), plain(&absent, ABSENT));
    assert_eq!(foreign.code(), Code::PermissionDenied);

    let taken = lessee.take(&node, &machine, &network).await.unwrap();
    for (key, value) in [
        ("metalmesh.dev/owner", &owner.project),
        ("metalmesh.dev/lessee", &lessee.project),
    ] {
        assert_eq!(label(&taken, key), Some(value.as_str()), "{key}");
    }
    assert!(label(&taken, "metalmesh.dev/lease-expires").is_some());
    // The owner sees that it is used and by whom, and not into it.
    let shown = owner.get(&node, &machine).await.unwrap();
    assert_eq!(
        (shown.used_by, shown.phase.as_str()),
        (lessee.project.clone(), "installing")
    );
    let inside = owner.shown(&node, &machine).await.unwrap_err();
    assert_eq!(inside.code(), Code::NotFound);
    let early = owner.end(&node, &machine).await.unwrap_err();
    assert_eq!(early.code(), Code::FailedPrecondition);

    lessee.end(&node, &machine).await.unwrap();
    assert_eq!(lessee.list(&node).await, []);
    assert_eq!(owner.list(&node).await, owned("owner"));
    // Its release shows no longer whose it is.
    let leaving = lessee.shown(&node, &machine).await.unwrap();
    assert_eq!(
        label(&leaving, "metalmesh.dev/phase"),
        Some("reclaim-power-off")
    );
    assert_eq!(label(&leaving, "metalmesh.dev/owner"), None);
    node.bmc_obeys(BmcAction::PowerOff).await;
    let gone = lessee.shown(&node, &machine).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    is_recorded(&node, "OperatorLeaseService/SetOwner");
    is_recorded(&node, ".LeaseService/Grant");
    is_recorded(&node, ".LeaseService/End");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_forge_neither_an_owner_nor_a_lessee() {
    let node = Node::start().await;
    let ([owner, lessee, stranger], machine, network) = site(&node).await;
    set_owner(&node, &machine, Some(&owner.project))
        .await
        .unwrap();
    owner
        .grant(&node, &machine, &lessee.project, 90)
        .await
        .unwrap();
    lessee.take(&node, &machine, &network).await.unwrap();
    let forged = [
        ("metalmesh.dev/lessee", stranger.project.as_str()),
        ("metalmesh.dev/owner", lessee.project.as_str()),
        ("metalmesh.dev/traits", "CUSTOM_GOLD"),
    ];
    let labels = forged.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let update = api::MachineServiceUpdateRequest {
        uuid: machine.clone(),
        project: lessee.project.clone(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        labels: Some(api::UpdateLabels {
            strategy: Some(api::update_labels::Strategy::Replace(api::Labels {
                labels: labels.into(),
            })),
        }),
        ..Default::default()
    };
    lessee.machines(&node).update(update).await.unwrap();
    let shown = lessee.shown(&node, &machine).await.unwrap();
    assert_eq!(
        label(&shown, "metalmesh.dev/lessee"),
        Some(lessee.project.as_str())
    );
    assert_eq!(
        label(&shown, "metalmesh.dev/owner"),
        Some(owner.project.as_str())
    );
    assert_eq!(label(&shown, "metalmesh.dev/traits"), None);
    // They give nobody a right either.
    assert_eq!(stranger.list(&node).await, []);
    let unseen = stranger.end(&node, &machine).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound);
    // The owner does not change meanwhile, not even by an administrator.
    let moved = set_owner(&node, &machine, Some(&stranger.project)).await;
    assert!(moved.unwrap_err().message().starts_with("MM-1230"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_by_its_date_and_watches_show_it() {
    let node = Node::start().await;
    let ([owner, lessee, _], machine, network) = site(&node).await;
    set_owner(&node, &machine, Some(&owner.project))
        .await
        .unwrap();
    let wire = node.wire(Some(&lessee.token));
    let mut watch = of_project(wire, &lessee.project, &["lease"]).await.unwrap();
    assert_eq!(listed(&mut watch).await.0, []);
    owner
        .grant(&node, &machine, &lessee.project, 50)
        .await
        .unwrap();
    let id = machine.as_str();
    assert_eq!(brief(&news(&mut watch).await), [(Created, "lease", id)]);
    lessee.take(&node, &machine, &network).await.unwrap();
    // Half of the lease is over: the end is near.
    node.silence(30 * MINUTE_MS).await;
    assert_eq!(brief(&news(&mut watch).await), [(Changed, "lease", id)]);
    let warned = lessee.get(&node, &machine).await.unwrap();
    assert!(warned.lease.unwrap().warned_at.is_some());
    let shown = lessee.shown(&node, &machine).await.unwrap();
    assert!(label(&shown, "metalmesh.dev/lease-warned").is_some());
    node.silence(51 * MINUTE_MS).await;
    assert_eq!(brief(&news(&mut watch).await), [(Deleted, "lease", id)]);
    assert_eq!(lessee.list(&node).await, []);
    let leaving = lessee.shown(&node, &machine).await.unwrap();
    assert_eq!(
        label(&leaving, "metalmesh.dev/phase"),
        Some("reclaim-power-off")
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_lessee_needs_the_owners_consent() {
    let node = Node::start().await;
    let ([owner, lessee, next], machine, _) = site(&node).await;
    set_owner(&node, &machine, Some(&owner.project))
        .await
        .unwrap();
    let lease = owner
        .grant(&node, &machine, &lessee.project, 90)
        .await
        .unwrap();
    let consent = |to: &str| mesh::LeaseServiceDecideTransferRequest {
        project: owner.project.clone(),
        machine: machine.clone(),
        lease: Some(lease.id.clone()),
        to: to.to_owned(),
        consent: true,
    };
    let mut leases = owner.leases(&node);
    let early = leases.decide_transfer(consent(&next.project)).await;
    assert_eq!(early.unwrap_err().code(), Code::Aborted);
    let ask = mesh::LeaseServiceRequestTransferRequest {
        project: lessee.project.clone(),
        machine: machine.clone(),
        lease: None,
        to: Some(next.project.clone()),
    };
    let asked = lessee.leases(&node).request_transfer(ask).await.unwrap();
    let asked = asked.into_inner().lease.unwrap();
    assert_eq!(asked.transfer_to, next.project);
    // The next one has nothing before the owner has said yes.
    assert_eq!(next.list(&node).await, []);
    leases
        .decide_transfer(consent(&next.project))
        .await
        .unwrap();
    assert_eq!(lessee.list(&node).await, []);
    assert_eq!(next.list(&node).await.len(), 1);
    let other = mesh::LeaseServiceDecideTransferRequest {
        lease: Some(Uuid::now_v7().to_string()),
        ..consent(&lessee.project)
    };
    let stale = leases.decide_transfer(other).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn site_policies_judge_by_the_relation() {
    let node = Node::start().await;
    let ([owner, lessee, stranger], machine, _) = site(&node).await;
    set_owner(&node, &machine, Some(&owner.project))
        .await
        .unwrap();
    owner
        .grant(&node, &machine, &lessee.project, 90)
        .await
        .unwrap();
    let deny = "deny contains \"keep\" if input.relation.machine == \"lessee\"";
    let source = about("metalmesh.admin.v1.LeaseService/End", deny);
    set(&node, "keep", &source).await.unwrap();
    let refused = lessee.end(&node, &machine).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().starts_with("MM-1105"), "{refused}");
    let unseen = stranger.end(&node, &machine).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound);
    owner.end(&node, &machine).await.unwrap();
    node.stop().await;
}
