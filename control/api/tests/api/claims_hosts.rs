//! Hosts of claims over the API: what their pool publishes of them, and how they are kept for a project.

use control_state::life::{MachineOrder, machine_order};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::pool_service_client::PoolServiceClient;
use proto_public::metalmesh::tenant::v1 as tenant;
use tonic::Code;

use crate::claiming::*;
use crate::claims::told;
use crate::node::Node;

const HOUR: prost_types::Duration = prost_types::Duration {
    seconds: 3_600,
    nanos: 0,
};

async fn set(node: &Node, pool: mesh::HostPool) -> Result<mesh::HostPool, tonic::Status> {
    let pool = mesh::HostPool {
        id: POOL.into(),
        policies: vec![everybody()],
        ..pool
    };
    let request = mesh::PoolServiceSetRequest {
        pool: Some(pool),
        expected_generation: None,
    };
    let mut pools = PoolServiceClient::new(node.as_admin());
    let set = pools.set(request).await?.into_inner();
    Ok(set.pool.unwrap())
}

/// The only host of the pool, as administrators see it.
async fn host(node: &Node) -> mesh::PoolHost {
    let mut pools = PoolServiceClient::new(node.as_admin());
    let request = mesh::PoolServiceListHostsRequest::default();
    let found = pools.list_hosts(request).await.unwrap().into_inner();
    let [host] = <[_; 1]>::try_from(found.hosts).unwrap();
    host
}

fn keeping(network: &str, wipe: &str) -> tenant::ClaimSpec {
    tenant::ClaimSpec {
        reuse: Some(tenant::ClaimReuse {
            key: "workers".into(),
            required: false,
            keep: Some(HOUR),
            wipe: wipe.to_owned(),
        }),
        ..installing(&[], network)
    }
}

/// A host that is kept by less than a full wipe is got by its project alone, and leaves the pool by a
/// full one.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_kept_with_its_data_for_its_project_alone() {
    let node = Node::start().await;
    node.data_centre().await;
    let limits = mesh::HostPool {
        reuse_max: Some(HOUR),
        reuse_floor: "metadata".into(),
        ..Default::default()
    };
    let shown = set(&node, limits).await.unwrap();
    assert_eq!(
        (shown.wipe_floor.as_str(), shown.reuse_floor.as_str()),
        ("erase", "metadata")
    );
    let machine = node.waiting_machine(1).await;
    add_host(&node, &machine, &[]).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let spec = keeping(&network, "metadata");
    let claim = create(&mut claims, &project, "web-1", spec).await;
    let reuse = claim.spec.clone().unwrap().reuse.unwrap();
    assert_eq!(reuse.wipe, "metadata");
    node.installed_claim(&machine).await;
    let (rivals, foreign) = node.tenant("rival").await;
    let mut theirs = Claims::new(node.wire(Some(&foreign)));
    let next = create(&mut theirs, &rivals, "web-1", asking(&[])).await;

    delete(&mut claims, &claim).await;
    node.boots_again().await;
    let id = node.registered_machine(1, 1).await;
    let order = node.store.read_local(|tables| machine_order(tables, id));
    assert_eq!(order.unwrap(), MachineOrder::WipeMetadata);
    node.wiped_machine(id, "metadata").await;
    assert_eq!(get(&mut claims, &claim).await.state, "gone");
    let kept = host(&node).await;
    assert_eq!(
        (kept.state.as_str(), kept.light_wipe.as_str()),
        ("reserved", "metadata")
    );
    assert_eq!(get(&mut theirs, &next).await.state, "pending");
    let again = create(&mut claims, &project, "web-2", keeping(&network, "")).await;
    assert_eq!(again.status.clone().unwrap().state, "provisioning");
    assert_eq!(host(&node).await.light_wipe, "");

    node.installed_claim(&machine).await;
    delete(&mut claims, &again).await;
    node.boots_again().await;
    node.registered_machine(1, 1).await;
    let order = node.store.read_local(|tables| machine_order(tables, id));
    assert_eq!(order.unwrap(), MachineOrder::Wipe, "it asked for no less");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_of_a_wipe_that_is_none_is_refused_with_its_field() {
    let node = Node::start().await;
    node.data_centre().await;
    for (pool, field) in [
        (("none", ""), "pool.wipe_floor"),
        (("metadata", ""), "pool.wipe_floor"),
        (("", "none"), "pool.reuse_floor"),
        (("erase", "sanitize"), "reuse_floor"),
    ] {
        let (wipe_floor, reuse_floor) = pool;
        let wanted = mesh::HostPool {
            wipe_floor: wipe_floor.into(),
            reuse_floor: reuse_floor.into(),
            ..Default::default()
        };
        let refused = set(&node, wanted).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(field), "{refused}");
    }
    let (project, token) = node.tenant("acme").await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let wrong = creation(&project, "web-1", keeping("private", "none"));
    let refused = claims.create(wrong).await.unwrap_err();
    assert!(refused.message().contains("spec.reuse.wipe"), "{refused}");
    node.stop().await;
}

/// Labels and annotations of the host that the pool publishes are in the status, and a watch tells of
/// their changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_shows_the_metadata_that_its_pool_publishes() {
    let node = Node::start().await;
    node.data_centre().await;
    let rules = |prefix: &str| mesh::HostKeyRules {
        prefixes: vec![prefix.to_owned()],
        ..Default::default()
    };
    let metadata = mesh::HostMetadataRules {
        labels: Some(rules("rack/")),
        annotations: Some(rules("cost/")),
    };
    let pool = mesh::HostPool {
        metadata: Some(metadata.clone()),
        ..Default::default()
    };
    assert_eq!(set(&node, pool).await.unwrap().metadata, Some(metadata));
    let machine = node.waiting_machine(1).await;
    let described = |center: &str| mesh::PoolServiceSetHostRequest {
        machine: machine.clone(),
        pool: POOL.into(),
        labels: owned(&[("rack/row", "7"), ("shelf", "7")]),
        annotations: owned(&[("cost/center", center), ("owner", "me")]),
        ..Default::default()
    };
    let mut pools = PoolServiceClient::new(node.as_admin());
    pools.set_host(described("1")).await.unwrap();
    assert_eq!(host(&node).await.annotations["owner"], "me");

    let (project, token) = node.tenant("acme").await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let claim = create(&mut claims, &project, "web-1", asking(&[])).await;
    let shown = claim.status.unwrap().host_metadata.unwrap();
    assert_eq!(shown.revision, 1);
    assert_eq!(shown.labels, owned(&[("rack/row", "7")]));
    assert_eq!(shown.annotations, owned(&[("cost/center", "1")]));
    let request = tenant::ClaimServiceWatchRequest {
        project,
        ..Default::default()
    };
    let mut watch = claims.watch(request).await.unwrap().into_inner();
    while !told(&mut watch).await.listed {}
    pools.set_host(described("2")).await.unwrap();
    let change = told(&mut watch).await.changes.remove(0);
    let changed = change.claim.unwrap().status.unwrap().host_metadata.unwrap();
    assert_eq!(changed.revision, 2);
    assert_eq!(changed.annotations, owned(&[("cost/center", "2")]));
    node.stop().await;
}
