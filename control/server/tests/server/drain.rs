//! Every node answers with the sessions and numbers that only the leader hears.

use agents_core::config::DriftPolicy;
use proto_public::metalmesh::admin::v1::{
    FabricServiceDrainRequest, FabricServiceGetRequest, FabricServiceListRequest, FabricSwitch,
};

use crate::agent::{Running, invited, three};
use crate::cli_fabric::telemetry;
use crate::nodes::{Cluster, eventually};

/// The switch as a node shows it, once it is as wanted.
async fn shown(
    cluster: &Cluster,
    at: usize,
    wanted: impl Fn(&FabricSwitch) -> bool,
) -> FabricSwitch {
    eventually("switch as wanted", || async {
        let request = FabricServiceGetRequest { id: "leaf1".into() };
        let found = cluster.client(at).fabric().get(request).await;
        let found = found.map_err(|error| error.to_string())?;
        let switch = found.into_inner().switch.unwrap_or_default();
        match wanted(&switch) {
            true => Ok(switch),
            false => Err(format!("{switch:?}")),
        }
    })
    .await
}

/// The first report may be from before the switch has any.
fn has_counters(switch: &FabricSwitch) -> bool {
    switch.ports.iter().any(|port| port.counters.is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_drains_a_switch_by_what_the_leader_hears() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let cluster = three(dir.path()).await;
    let args = invited(&cluster, 0, dir.path()).await;
    let running = Running::start_on(&args, DriftPolicy::Heal, &["swp1", "swp2"]).await;
    running.switch.set_telemetry(telemetry());
    for at in 0..3 {
        let heard = |switch: &FabricSwitch| switch.connected == Some(true) && has_counters(switch);
        let switch = shown(&cluster, at, heard).await;
        let counters = switch.ports[0].counters.as_ref();
        assert_eq!(counters.map(|counters| counters.rx_bytes), Some(4096));
        let list = FabricServiceListRequest::default();
        let list = cluster.client(at).fabric().list(list).await.unwrap();
        let [leaf] = &list.into_inner().switches[..] else {
            panic!("one switch");
        };
        assert_eq!(leaf.connected, Some(true), "node {at}");
        for drained in [true, false] {
            let request = FabricServiceDrainRequest {
                id: "leaf1".into(),
                drained,
                force: false,
            };
            let drain = cluster.client(at).fabric().drain(request).await;
            let switch = drain.unwrap().into_inner().switch.unwrap();
            assert_eq!(switch.drained_at.is_some(), drained, "node {at}");
        }
    }
    running.stop().await;
    for at in 0..3 {
        shown(&cluster, at, |switch| switch.connected == Some(false)).await;
    }
}
