//! Many clients at once: machines are given out once each, and nothing stays behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use control_state::{
    BmcAction, BmcOrderDone, Family, Ip, LabelsUpdate, Lock, Machine, Network, Phase,
    UpdatePartition, label, life, query,
};
use proto_public::api::v2 as api;
use proto_types::PartitionId;
use tokio::task::JoinSet;
use tonic::Code;

use crate::node::{Node, Wire, leaf, wanted_machine};

const CLIENTS: usize = 64;
const MACHINES: u128 = 200;
/// Longest time for the BMCs to obey.
const PATIENCE: Duration = Duration::from_secs(60);

type Machines = api::machine_service_client::MachineServiceClient<Wire>;

/// Allocates until there is nothing left; what it got.
async fn client(
    mut machines: Machines,
    number: usize,
    project: String,
    network: String,
) -> Vec<api::Machine> {
    let mut mine = Vec::new();
    loop {
        let name = format!("web-{number}-{}", mine.len());
        match machines
            .create(wanted_machine(&project, &network, &name))
            .await
        {
            Ok(made) => mine.push(made.into_inner().machine.unwrap()),
            Err(refused) => {
                assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
                assert!(refused.message().starts_with("MM-1203"), "{refused}");
                return mine;
            }
        }
    }
}

/// The BMCs of the partition do what they are told until all machines are free.
async fn bmcs_obey(node: &Node) {
    let partition: PartitionId = "lab".parse().unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        let look = node.store.read_local(|tables| {
            let open = life::bmc_desired(tables, &partition);
            let of = |action| open.iter().filter(move |it| it.action == action);
            let off: Vec<_> = of(BmcAction::PowerOff).map(|it| it.id).collect();
            let left = tables.all::<Machine>().filter(|it| it.allocation.is_some());
            (off, left.count())
        });
        let (off, left) = look.unwrap();
        if left == 0 {
            return;
        }
        assert!(Instant::now() < until, "{left} machines are still had");
        let has_moved = !off.is_empty();
        for id in off {
            node.hardware(BmcOrderDone {
                id,
                partition: partition.clone(),
                error: None,
                power_state: None,
                nonce: None,
            })
            .await;
        }
        if has_moved {
            node.leaf_obeys().await;
        }
        tokio::task::yield_now().await;
    }
}

async fn site(node: &Node) {
    node.data_centre().await;
    // All of them become known within the minute.
    let rate = (label::UNKNOWN_MACHINES.to_owned(), MACHINES.to_string());
    node.hardware(UpdatePartition {
        id: "lab".parse().unwrap(),
        lock: Lock::Server,
        description: None,
        boot: None,
        dns_servers: None,
        ntp_servers: None,
        mgmt_service_addresses: None,
        labels: Some(LabelsUpdate::Replace([rate].into())),
    })
    .await;
    node.hardware(leaf(MACHINES)).await;
    for number in 1..=MACHINES {
        node.waiting_machine(number).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_machine_is_given_out_once() {
    let node = Node::start().await;
    site(&node).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let machines = Machines::new(node.wire(Some(&token)));
        clients.spawn(client(machines, number, project.clone(), network.clone()));
    }
    let got: Vec<api::Machine> = clients.join_all().await.into_iter().flatten().collect();
    let count = usize::try_from(MACHINES).unwrap();
    let ids: BTreeSet<&str> = got.iter().map(|it| it.uuid.as_str()).collect();
    assert_eq!((got.len(), ids.len()), (count, count));
    let allocations = got.iter().map(|it| it.allocation.as_ref().unwrap());
    let networks: Vec<_> = allocations.flat_map(|it| &it.networks).collect();
    let addresses: BTreeSet<_> = networks.iter().flat_map(|it| &it.ips).collect();
    let numbers: BTreeSet<u32> = networks.iter().map(|it| it.asn).collect();
    assert_eq!((addresses.len(), numbers.len()), (count, count));
    println!(
        "{CLIENTS} clients, {MACHINES} machines, {} given out",
        got.len()
    );

    // All are given back at once.
    let mut clients = JoinSet::new();
    for machine in got {
        let mut machines = Machines::new(node.wire(Some(&token)));
        let request = api::MachineServiceDeleteRequest {
            uuid: machine.uuid,
            project: project.clone(),
        };
        clients.spawn(async move { machines.delete(request).await });
    }
    bmcs_obey(&node).await;
    for freed in clients.join_all().await {
        freed.unwrap();
    }
    nothing_is_left(&node, &token, &project, &network).await;
    node.stop().await;
}

async fn nothing_is_left(node: &Node, token: &str, project: &str, network: &str) {
    let id = network.parse().unwrap();
    let left = node.store.read_local(|tables| {
        let network = tables.get::<Network>(&id).unwrap();
        let usage = query::network_usage(tables, network, Family::V4).unwrap();
        let reclaimed = tables.all::<Machine>().filter(|it| it.phase.is_reclaim());
        let running = tables
            .all::<Machine>()
            .filter(|it| it.phase == Phase::Running);
        (
            tables.all::<Ip>().count(),
            usage.used_ips,
            reclaimed.count(),
            running.count(),
        )
    });
    let count = usize::try_from(MACHINES).unwrap();
    assert_eq!(left.unwrap(), (0, 0, count, 0));
    let mut networks =
        api::network_service_client::NetworkServiceClient::new(node.wire(Some(token)));
    let request = api::NetworkServiceDeleteRequest {
        id: network.to_owned(),
        project: project.to_owned(),
    };
    networks.delete(request).await.unwrap();
    let mut projects =
        api::project_service_client::ProjectServiceClient::new(node.wire(Some(token)));
    let request = api::ProjectServiceDeleteRequest {
        project: project.to_owned(),
    };
    projects.delete(request).await.unwrap();
}
