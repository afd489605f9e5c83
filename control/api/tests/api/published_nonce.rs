//! A published hammer in a partition where machines return what their BMC holds.

use control_state::{BmcAction, IssueBootTicket, label};
use infra::boot_service_client::BootServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::infra::v2 as infra;
use proto_types::Digest;
use tonic::Code;

use crate::node::Node;
use crate::published_agents::{MAC, UUID, agent, commands, token_request, waiting};

#[tokio::test(flavor = "multi_thread")]
async fn where_machines_return_their_bmcs_nonce_a_published_hammer_gets_no_token() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, Some("lab")).await;
    let (_, _, _stream) = waiting(&node, &agent).await;
    demand_nonce(&node, "true").await;
    let mut boot = BootServiceClient::new(node.wire(Some(&agent)));
    let refused = boot.machine_token(token_request(UUID)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let text = refused.message();
    assert!(text.contains("which the published hammer cannot"), "{text}");

    // Its BMC agent is not asked for what it has no word for.
    let mac = MAC.parse().unwrap();
    node.hardware(IssueBootTicket {
        id: uuid::Uuid::from_u128(1).into(),
        machine: UUID.parse().unwrap(),
        mac,
        partition: "lab".parse().unwrap(),
        secret: Digest::sha256([1; 32]),
        expires_at: node.store.now().plus_ms(60_000),
    })
    .await;
    let mut admins = admin::machine_service_client::MachineServiceClient::new(node.as_admin());
    let on = admin::MachineServiceBmcCommandRequest {
        uuid: UUID.into(),
        command: api::MachineBmcCommand::IdentifyLedOn.into(),
    };
    admins.bmc_command(on).await.unwrap();
    let open = bmc_desired_of(&node);
    assert_eq!(open, [BmcAction::SetNonce, BmcAction::LedOn]);
    let mut orders = commands(&node, &agent).await;
    let first = orders.message().await.unwrap().unwrap();
    assert_eq!(first.bmc_command(), api::MachineBmcCommand::IdentifyLedOn);

    demand_nonce(&node, "false").await;
    boot.machine_token(token_request(UUID)).await.unwrap();
    node.stop().await;
}

fn bmc_desired_of(node: &Node) -> Vec<BmcAction> {
    let partition = "lab".parse().unwrap();
    let open = node.store.read_local(|tables| {
        let open = control_state::life::bmc_desired(tables, &partition);
        open.iter().map(|it| it.action).collect()
    });
    open.unwrap()
}

async fn demand_nonce(node: &Node, demand: &str) {
    let label = (label::REQUIRE_BMC_NONCE.to_owned(), demand.to_owned());
    let patch = api::LabelsPatch {
        update: Some(api::Labels {
            labels: [label].into(),
        }),
        remove: Vec::new(),
    };
    let request = admin::PartitionServiceUpdateRequest {
        id: "lab".into(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        labels: Some(api::UpdateLabels {
            strategy: Some(api::update_labels::Strategy::Patch(patch)),
        }),
        ..Default::default()
    };
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    partitions.update(request).await.unwrap();
}
