//! Hosts whose BMC nobody reaches, over the API.

use control_authz::{Permit, SystemActor};
use control_state::{BMC_SILENT_AFTER_MS, BmcReading, Command, ReportBmc, Tick};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::pool_service_client::PoolServiceClient;

use crate::claiming::*;
use crate::node::Node;

/// The agent of a machine's BMC tells how a reading went.
async fn read_bmc(node: &Node, machine: &str, error: Option<&str>) {
    let reading = BmcReading {
        machine: machine.parse().ok(),
        address: "10.9.0.1:623".into(),
        error: error.map(str::to_owned),
        observed_at: node.store.now(),
        ..BmcReading::default()
    };
    node.hardware(ReportBmc {
        partition: "lab".parse().unwrap(),
        readings: vec![reading],
    })
    .await;
}

/// The leader's tick, so much later; hammer was heard all along.
async fn tick_later(node: &Node, machine: &str, ms: u64) {
    let permit = Permit::system(SystemActor::Reconcile);
    let later = node.store.now().plus_ms(ms);
    let tick = Tick {
        heard: [(machine.parse().unwrap(), later)].into(),
        ..Tick::default()
    };
    let command = Command::new(later, "test", tick);
    node.store.propose(&permit, &command).await.unwrap();
}

/// State and reason of the only host.
async fn host(node: &Node) -> (String, String) {
    let mut pools = PoolServiceClient::new(node.as_admin());
    let request = mesh::PoolServiceListHostsRequest { pool: POOL.into() };
    let listed = pools.list_hosts(request).await.unwrap().into_inner();
    let host = listed.hosts.into_iter().next().unwrap();
    (host.state, host.reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_bmc_nobody_reaches_is_not_ready_until_it_is_read_again() {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    let machine = node.waiting_machine(1).await;
    add_host(&node, &machine, &[]).await;
    let (project, token) = node.tenant("acme").await;
    read_bmc(&node, &machine, None).await;
    assert_eq!(host(&node).await, ("free".to_owned(), String::new()));

    tick_later(&node, &machine, BMC_SILENT_AFTER_MS).await;
    let (state, reason) = host(&node).await;
    let expected = ("not-ready", "no agent reaches its BMC");
    assert_eq!((state.as_str(), reason.as_str()), expected);
    let mut claims = Claims::new(node.wire(Some(&token)));
    let claim = create(&mut claims, &project, "web-1", asking(&[])).await;
    let status = get(&mut claims, &claim).await;
    assert_eq!(
        (status.state.as_str(), status.pending_reason.as_str()),
        ("pending", "AllBusy")
    );

    read_bmc(&node, &machine, Some("timeout")).await;
    assert_eq!(get(&mut claims, &claim).await.state, "pending");
    read_bmc(&node, &machine, None).await;
    assert_eq!(get(&mut claims, &claim).await.state, "bound");
    assert_eq!(host(&node).await.0, "bound");
    node.stop().await;
}
