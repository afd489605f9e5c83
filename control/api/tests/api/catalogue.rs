//! Size reservations, size-image constraints and which layout fits, over gRPC.

use admin::filesystem_service_match_request::Match;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::{Node, debian};

const ABSENT: &str = "00000000-0000-4000-8000-0000000000ff";

fn reservation(project: &str, partition: &str) -> admin::SizeReservationServiceCreateRequest {
    admin::SizeReservationServiceCreateRequest {
        size_reservation: Some(api::SizeReservation {
            name: "for the launch".into(),
            project: project.to_owned(),
            size: "small".into(),
            partitions: vec![partition.to_owned()],
            amount: 2,
            ..Default::default()
        }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_its_projects() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let (other, other_token) = node.tenant("other").await;
    let mut reservations =
        admin::size_reservation_service_client::SizeReservationServiceClient::new(node.as_admin());
    let refused = reservations.create(reservation(&project, "nowhere")).await;
    assert_eq!(refused.unwrap_err().code(), Code::NotFound);
    let made = reservations.create(reservation(&project, "lab")).await;
    let made = made.unwrap().into_inner().size_reservation.unwrap();
    assert_eq!((made.amount, made.partitions), (2, vec!["lab".to_owned()]));

    let get = |project: &str| api::SizeReservationServiceGetRequest {
        id: made.id.clone(),
        project: project.to_owned(),
    };
    let client = |token| {
        let wire = node.wire(Some(token));
        api::size_reservation_service_client::SizeReservationServiceClient::new(wire)
    };
    let mut own = client(&token);
    let seen = own.get(get(&project)).await.unwrap().into_inner();
    assert_eq!(seen.size_reservation.unwrap().name, "for the launch");
    let mut foreign = client(&other_token);
    let unseen = foreign.get(get(&other)).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound);
    let list = api::SizeReservationServiceListRequest {
        project: other,
        query: None,
    };
    let listed = foreign.list(list).await.unwrap().into_inner();
    assert!(listed.size_reservations.is_empty());

    let update = admin::SizeReservationServiceUpdateRequest {
        id: made.id.clone(),
        update_meta: Some(api::UpdateMeta {
            updated_at: made.meta.unwrap().updated_at,
            locking_strategy: 1,
        }),
        partitions: vec!["lab".into()],
        amount: Some(3),
        ..Default::default()
    };
    let changed = reservations.update(update.clone()).await.unwrap();
    assert_eq!(changed.into_inner().size_reservation.unwrap().amount, 3);
    let stale = reservations.update(update).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    let query = api::SizeReservationQuery {
        partition: Some("lab".into()),
        project: Some(project.clone()),
        ..Default::default()
    };
    let list = admin::SizeReservationServiceListRequest { query: Some(query) };
    let listed = reservations.list(list).await.unwrap().into_inner();
    assert_eq!(listed.size_reservations.len(), 1);
    let delete = admin::SizeReservationServiceDeleteRequest {
        id: made.id.clone(),
    };
    reservations.delete(delete).await.unwrap();
    let gone = own.get(get(&project)).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_asks_which_layout_fits() {
    let node = Node::start().await;
    node.data_centre().await;
    let machine = node.waiting_machine(1).await;
    let mut layouts =
        admin::filesystem_service_client::FilesystemServiceClient::new(node.as_admin());
    let by_image = Match::SizeAndImage(admin::MatchImageAndSize {
        size: "small".into(),
        image: debian().id,
    });
    let by_machine = |machine: &str, layout: &str| {
        Match::MachineAndFilesystemlayout(admin::MatchMachineAndFilesystemLayout {
            machine: machine.to_owned(),
            filesystem_layout: layout.to_owned(),
        })
    };
    let cases = [
        (by_image, Err(Code::InvalidArgument)),
        (by_machine(&machine, "default"), Ok("default")),
        (by_machine(&machine, "absent"), Err(Code::NotFound)),
        (by_machine(ABSENT, "default"), Err(Code::NotFound)),
    ];
    for (wanted, expected) in cases {
        let request = admin::FilesystemServiceMatchRequest {
            r#match: Some(wanted.clone()),
        };
        let answer = layouts.r#match(request).await;
        let answer = answer.map(|it| it.into_inner().filesystem_layout.unwrap().id);
        let answer = answer.as_deref().map_err(tonic::Status::code);
        assert_eq!(answer, expected, "{wanted:?}");
    }
    let nothing = admin::FilesystemServiceMatchRequest { r#match: None };
    let refused = layouts.r#match(nothing).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_name_is_not_deleted() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, _) = node.tenant("acme").await;
    let partition = api::Partition {
        id: "empty".into(),
        ..Default::default()
    };
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let create = admin::PartitionServiceCreateRequest {
        partition: Some(partition),
    };
    partitions.create(create).await.unwrap();
    let mut reservations =
        admin::size_reservation_service_client::SizeReservationServiceClient::new(node.as_admin());
    let made = reservations.create(reservation(&project, "empty")).await;
    let made = made.unwrap().into_inner().size_reservation.unwrap();
    let mut sizes = admin::size_service_client::SizeServiceClient::new(node.as_admin());
    let delete_partition = || admin::PartitionServiceDeleteRequest { id: "empty".into() };
    let delete_size = || admin::SizeServiceDeleteRequest { id: "small".into() };
    let refused = partitions.delete(delete_partition()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("size reservation"), "{refused}");
    let refused = sizes.delete(delete_size()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let delete = admin::SizeReservationServiceDeleteRequest { id: made.id };
    reservations.delete(delete).await.unwrap();
    partitions.delete(delete_partition()).await.unwrap();

    let mut layouts =
        admin::filesystem_service_client::FilesystemServiceClient::new(node.as_admin());
    let layout = api::FilesystemLayout {
        id: "cut".into(),
        constraints: Some(api::FilesystemLayoutConstraints {
            sizes: vec!["small".into()],
            images: [("debian".to_owned(), ">= 12.0".to_owned())].into(),
        }),
        // Number 0 is a number.
        disks: vec![api::Disk {
            device: "/dev/vda".into(),
            partitions: vec![api::DiskPartition {
                gpt_type: Some(api::GptType::Linux.into()),
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let mut unspecified = layout.clone();
    unspecified.disks[0].partitions[0].gpt_type = Some(api::GptType::Unspecified.into());
    let create = |layout| admin::FilesystemServiceCreateRequest {
        filesystem_layout: Some(layout),
    };
    let refused = layouts.create(create(unspecified)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    layouts.create(create(layout)).await.unwrap();
    let refused = sizes.delete(delete_size()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("filesystem layout"), "{refused}");
    let delete = admin::FilesystemServiceDeleteRequest { id: "cut".into() };
    layouts.delete(delete).await.unwrap();

    let mut constraints =
        admin::size_image_constraint_service_client::SizeImageConstraintServiceClient::new(
            node.as_admin(),
        );
    let create = admin::SizeImageConstraintServiceCreateRequest {
        size: "small".into(),
        image_constraints: vec![api::ImageConstraint {
            image: "debian".into(),
            semver_match: ">= 12.0".into(),
        }],
        ..Default::default()
    };
    constraints.create(create).await.unwrap();
    let refused = sizes.delete(delete_size()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let delete = admin::SizeImageConstraintServiceDeleteRequest {
        size: "small".into(),
    };
    constraints.delete(delete).await.unwrap();
    sizes.delete(delete_size()).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_a_preview_until_it_is_said_otherwise() {
    use api::ImageClassification::{Preview, Supported, Unspecified};
    let node = Node::start().await;
    let mut images = admin::image_service_client::ImageServiceClient::new(node.as_admin());
    let mut image = debian();
    image.classification = Unspecified.into();
    let create = admin::ImageServiceCreateRequest { image: Some(image) };
    let made = images.create(create).await.unwrap().into_inner();
    let class = |image: Option<api::Image>| image.unwrap().classification();
    assert_eq!(class(made.image), Preview);
    for (sent, expected) in [(Supported, Supported), (Unspecified, Supported)] {
        let update = admin::ImageServiceUpdateRequest {
            id: debian().id,
            update_meta: Some(api::UpdateMeta {
                updated_at: None,
                locking_strategy: api::OptimisticLockingStrategy::Server.into(),
            }),
            classification: sent.into(),
            ..Default::default()
        };
        let changed = images.update(update).await.unwrap().into_inner();
        assert_eq!(class(changed.image), expected);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_a_partition_are_kept_and_emptied() {
    let node = Node::start().await;
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let dns = |ips: &[&str]| -> Vec<api::DnsServer> {
        let server = |ip: &&str| api::DnsServer {
            ip: (*ip).to_owned(),
        };
        ips.iter().map(server).collect()
    };
    let ntp = |hosts: &[&str]| -> Vec<api::NtpServer> {
        let server = |host: &&str| api::NtpServer {
            address: (*host).to_owned(),
        };
        hosts.iter().map(server).collect()
    };
    let partition = api::Partition {
        id: "lab".into(),
        dns_servers: dns(&["10.0.0.1", "fd00::1"]),
        ntp_servers: ntp(&["ntp.example"]),
        mgmt_service_addresses: vec!["10.0.0.2:4711".into()],
        ..Default::default()
    };
    let create = admin::PartitionServiceCreateRequest {
        partition: Some(partition),
    };
    let made = partitions.create(create).await.unwrap().into_inner();
    let made = made.partition.unwrap();
    let update = |of: &api::Partition| admin::PartitionServiceUpdateRequest {
        id: "lab".into(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        description: Some(of.description.clone()),
        boot_configuration: of.boot_configuration.clone(),
        dns_servers: of.dns_servers.clone(),
        ntp_servers: of.ntp_servers.clone(),
        mgmt_service_addresses: of.mgmt_service_addresses.clone(),
        labels: None,
    };
    let without_meta = |partition: &api::Partition| api::Partition {
        meta: None,
        ..partition.clone()
    };
    let mut changed = made.clone();
    // The same again, then only a text, then each list alone.
    let only_text = admin::PartitionServiceUpdateRequest {
        description: Some("the lab".into()),
        ..update(&api::Partition::default())
    };
    for request in [update(&made), only_text] {
        let answer = partitions.update(request.clone()).await.unwrap();
        let answer = answer.into_inner().partition.unwrap();
        changed.description = request.description.unwrap();
        assert_eq!(without_meta(&answer), without_meta(&changed));
    }
    let nothing = api::Partition {
        description: changed.description.clone(),
        ..Default::default()
    };
    let mut emptied = update(&nothing);
    emptied.dns_servers = dns(&["0.0.0.0"]);
    let answer = partitions.update(emptied).await.unwrap().into_inner();
    changed.dns_servers = Vec::new();
    assert_eq!(
        without_meta(&answer.partition.unwrap()),
        without_meta(&changed)
    );
    let mut emptied = update(&nothing);
    emptied.ntp_servers = ntp(&["::"]);
    emptied.mgmt_service_addresses = vec!["0.0.0.0:0".into()];
    let answer = partitions.update(emptied).await.unwrap().into_inner();
    let answer = answer.partition.unwrap();
    changed.ntp_servers = Vec::new();
    changed.mgmt_service_addresses = Vec::new();
    assert_eq!(without_meta(&answer), without_meta(&changed));
    // What came of it is written back as it is.
    let again = partitions.update(update(&answer)).await.unwrap();
    let again = again.into_inner().partition.unwrap();
    assert_eq!(without_meta(&again), without_meta(&changed));
    node.stop().await;
}
