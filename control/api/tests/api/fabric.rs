//! Switches for their operators from outside, over gRPC.

use mesh::fabric_service_client::FabricServiceClient;
use mesh::fabric_service_get_plan_request::Change;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::node::Node;

fn plan(change: Change) -> mesh::FabricServiceGetPlanRequest {
    mesh::FabricServiceGetPlanRequest {
        change: Some(change),
    }
}

fn drain(id: &str, drained: bool) -> mesh::FabricServiceDrainRequest {
    mesh::FabricServiceDrainRequest {
        id: id.into(),
        drained,
        // Nobody serves sessions here, so that no leader knows which leaves are heard.
        force: true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_plan_and_drain_switches() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let machine = node.waiting_machine(1).await;
    node.leaf_obeys().await;
    let mut fabric = FabricServiceClient::new(node.as_admin());
    let mut tenant = FabricServiceClient::new(node.wire(Some(&token)));

    let leaf1 = mesh::FabricServiceGetRequest { id: "leaf1".into() };
    let refused = tenant.get(leaf1.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let absent = mesh::FabricServiceGetRequest { id: "leaf9".into() };
    let unknown = fabric.get(absent).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let shown = fabric.get(leaf1).await.unwrap().into_inner();
    let shown = shown.switch.unwrap();
    assert_eq!((shown.ports.len(), shown.differences.len()), (8, 0));
    let [first, ..] = &shown.ports[..] else {
        panic!("{shown:?}");
    };
    assert_eq!(first.machine, machine);
    assert_eq!(
        first.desired.as_ref().unwrap().place(),
        mesh::FabricPlace::Segment
    );
    assert!(
        first.counters.is_none(),
        "an agent of the published stack counts nothing"
    );

    let before = node
        .store
        .read_local(control_state::Tables::revision)
        .unwrap();
    let allocate = Change::Allocate(mesh::FabricAllocation {
        machine: machine.clone(),
        network,
        image: String::new(),
    });
    let planned = fabric.get_plan(plan(allocate.clone())).await.unwrap();
    let planned = planned.into_inner().planned;
    let place = planned
        .iter()
        .find(|row| row.object == "port swp1" && row.field == "place");
    let place = place.unwrap_or_else(|| panic!("{planned:?}"));
    assert_eq!(place.before, "segment 4000");
    assert!(
        place.after.starts_with("segment ") && place.after != place.before,
        "{place:?}"
    );
    assert!(tenant.get_plan(plan(allocate)).await.is_err());
    let release = fabric
        .get_plan(plan(Change::Release(machine.clone())))
        .await;
    assert_eq!(release.unwrap_err().code(), Code::FailedPrecondition);
    let nothing = fabric
        .get_plan(mesh::FabricServiceGetPlanRequest { change: None })
        .await;
    assert_eq!(nothing.unwrap_err().code(), Code::InvalidArgument);
    let after = node
        .store
        .read_local(control_state::Tables::revision)
        .unwrap();
    assert_eq!(before, after, "a plan writes nothing");

    let trace = |machine: &str, address: &str| mesh::FabricServiceGetTraceRequest {
        machine: machine.into(),
        address: address.into(),
    };
    let traced = fabric.get_trace(trace(&machine, "10.0.0.1")).await.unwrap();
    let traced = traced.into_inner().trace.unwrap();
    assert!(
        !traced.arrives && traced.verdict.contains("is not allocated"),
        "{traced:?}"
    );
    let wrong = fabric.get_trace(trace(&machine, "ten")).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);

    for _ in 0..2 {
        let drained = fabric
            .drain(drain("leaf1", true))
            .await
            .unwrap()
            .into_inner();
        assert!(drained.switch.unwrap().drained_at.is_some());
    }
    let undrained = fabric
        .drain(drain("leaf1", false))
        .await
        .unwrap()
        .into_inner();
    assert!(undrained.switch.unwrap().drained_at.is_none());
    assert!(tenant.drain(drain("leaf1", true)).await.is_err());
    let all = mesh::FabricServiceListDifferencesRequest::default();
    let all = fabric.list_differences(all).await.unwrap().into_inner();
    assert_eq!(all.differences, vec![]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_list_switches_and_name_partitions_that_are_there() {
    let node = Node::start().await;
    node.data_centre().await;
    node.leaf_obeys().await;
    let (_, token) = node.tenant("acme").await;
    let mut fabric = FabricServiceClient::new(node.as_admin());
    let mut tenant = FabricServiceClient::new(node.wire(Some(&token)));
    let list = mesh::FabricServiceListRequest::default();
    let refused = tenant.list(list.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let all = fabric.list(list).await.unwrap().into_inner().switches;
    let ids: Vec<_> = all.iter().map(|leaf| leaf.id.as_str()).collect();
    assert_eq!(ids, ["leaf1"]);
    assert_eq!((all[0].differences, all[0].drained_at), (0, None));
    let elsewhere = mesh::FabricServiceListRequest {
        partition: "nowhere".into(),
    };
    let unknown = fabric.list(elsewhere).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let elsewhere = mesh::FabricServiceListDifferencesRequest {
        id: String::new(),
        partition: "nowhere".into(),
    };
    let unknown = fabric.list_differences(elsewhere).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}
