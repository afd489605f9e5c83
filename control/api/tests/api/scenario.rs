//! The scenario of an admin and a tenant, over gRPC.

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::image_store::ImageStore;
use crate::node::Node;

#[tokio::test(flavor = "multi_thread")]
async fn catalogue_networks_and_addresses() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let wire = node.wire(Some(&token));

    let mut networks = api::network_service_client::NetworkServiceClient::new(wire.clone());
    let request = api::NetworkServiceListRequest {
        project: project.clone(),
        query: None,
    };
    let own = networks.list(request).await.unwrap().into_inner().networks;
    assert_eq!(own.len(), 1);
    assert_eq!(
        (own[0].nat_type, own[0].r#type),
        (1, api::NetworkType::Child as i32)
    );
    assert_eq!(own[0].prefixes, ["10.128.0.0/24"]);
    let request = api::NetworkServiceListBaseNetworksRequest {
        project: project.clone(),
        query: None,
    };
    let base = networks
        .list_base_networks(request)
        .await
        .unwrap()
        .into_inner()
        .networks;
    assert_eq!(base.len(), 1);
    assert!(
        base[0].consumption.is_none(),
        "how full it is, is nobody's business"
    );

    let mut ips = api::ip_service_client::IpServiceClient::new(wire);
    let request = api::IpServiceCreateRequest {
        network: network.clone(),
        project: project.clone(),
        name: Some("web".into()),
        ..Default::default()
    };
    let ip = ips.create(request).await.unwrap().into_inner().ip.unwrap();
    assert_eq!(
        (ip.ip.as_str(), ip.r#type),
        ("10.128.0.1", api::IpType::Ephemeral as i32)
    );
    let request = api::NetworkServiceGetRequest {
        id: network,
        project: project.clone(),
    };
    let shown = networks
        .get(request)
        .await
        .unwrap()
        .into_inner()
        .network
        .unwrap();
    let usage = shown.consumption.unwrap().ipv4.unwrap();
    assert_eq!((usage.used_ips, usage.available_ips), (1, 254));

    let request = api::IpServiceDeleteRequest {
        ip: ip.ip.clone(),
        project: project.clone(),
    };
    ips.delete(request).await.unwrap();
    let request = api::IpServiceGetRequest {
        ip: ip.ip,
        project,
        namespace: None,
    };
    assert_eq!(ips.get(request).await.unwrap_err().code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_must_have_seen_the_newest() {
    let node = Node::start().await;
    node.data_centre().await;
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let update =
        |seen: Option<prost_types::Timestamp>, text: &str| admin::PartitionServiceUpdateRequest {
            id: "lab".into(),
            update_meta: Some(api::UpdateMeta {
                updated_at: seen,
                locking_strategy: 1,
            }),
            description: Some(text.to_owned()),
            ..Default::default()
        };
    let read = api::PartitionServiceGetRequest { id: "lab".into() };
    let mut reader = api::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let seen = reader
        .get(read)
        .await
        .unwrap()
        .into_inner()
        .partition
        .unwrap();
    let seen = seen.meta.unwrap().updated_at;
    let changed = partitions
        .update(update(seen, "one"))
        .await
        .unwrap()
        .into_inner();
    let meta = changed.partition.unwrap().meta.unwrap();
    assert_eq!(meta.generation, 2);
    let stale = partitions.update(update(seen, "two")).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    assert!(
        stale.message().starts_with("MM-1003"),
        "{}",
        stale.message()
    );
    let unsaid = partitions.update(update(None, "two")).await.unwrap_err();
    assert_eq!(unsaid.code(), Code::InvalidArgument);
    partitions
        .update(update(meta.updated_at, "two"))
        .await
        .unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_as_published_clients_send_them() {
    let node = Node::start().await;
    let store = ImageStore::start().await;
    store.file("/ubuntu.tar.zst", "a system");
    let mut images = admin::image_service_client::ImageServiceClient::new(node.as_admin());
    for id in [
        "ubuntu-24.04.20260101",
        "ubuntu-24.04.20260301",
        "ubuntu-24.4",
    ] {
        // No expiry.
        let image = |features: &[api::ImageFeature]| api::Image {
            id: id.into(),
            url: store.url("/ubuntu.tar.zst"),
            features: features.iter().map(|one| i32::from(*one)).collect(),
            classification: api::ImageClassification::Supported.into(),
            ..Default::default()
        };
        let request = |features| admin::ImageServiceCreateRequest {
            image: Some(image(features)),
        };
        let refused = images.create(request(&[])).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains("features"), "{refused}");
        let request = request(&[api::ImageFeature::Machine]);
        let made = images
            .create(request)
            .await
            .unwrap()
            .into_inner()
            .image
            .unwrap();
        assert_eq!(made.features, [api::ImageFeature::Machine as i32]);
        assert!(made.expires_at.is_some());
    }
    let mut reader = api::image_service_client::ImageServiceClient::new(node.as_admin());
    for os in ["ubuntu", "ubuntu-24.04", "ubuntu-24.4"] {
        let request = api::ImageServiceLatestRequest {
            os: os.into(),
            classification: None,
        };
        let latest = reader
            .latest(request)
            .await
            .unwrap()
            .into_inner()
            .image
            .unwrap();
        assert_eq!(latest.id, "ubuntu-24.04.20260301", "{os}");
    }
    let bad = api::Image {
        id: "ubuntu".into(),
        url: "http://x/y".into(),
        ..Default::default()
    };
    let request = admin::ImageServiceCreateRequest { image: Some(bad) };
    let refused = images.create(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().starts_with("MM-1301"),
        "{}",
        refused.message()
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn join_tickets() {
    let node = Node::start().await;
    node.data_centre().await;
    let mut joins = mesh::join_service_client::JoinServiceClient::new(node.as_admin());
    let request = mesh::JoinServiceCreateRequest {
        kind: mesh::AgentKind::Core.into(),
        partition: "lab".into(),
        id: "leaf1".into(),
        key_sha256: "cd".repeat(32),
        minutes: 5,
        tpm_ek_sha256: String::new(),
        tpm_ek_certificate: Vec::new(),
        reenrol: false,
    };
    let made = joins.create(request.clone()).await.unwrap().into_inner();
    assert!(made.secret.starts_with("mmt1."));
    let id = made.ticket.unwrap().id;
    let listed = joins
        .list(mesh::JoinServiceListRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.tickets.len(), 1);
    assert!(!format!("{listed:?}").contains(&made.secret));
    let revoked = joins
        .revoke(mesh::JoinServiceRevokeRequest { id })
        .await
        .unwrap();
    assert!(revoked.into_inner().ticket.unwrap().revoked);
    // A TPM vouches for a key as well as an operator does.
    let of_tpm = mesh::JoinServiceCreateRequest {
        key_sha256: String::new(),
        tpm_ek_sha256: "ef".repeat(32),
        ..request.clone()
    };
    let made = joins.create(of_tpm).await.unwrap().into_inner();
    assert_eq!(made.ticket.unwrap().tpm_ek_sha256, "ef".repeat(32));
    for bad in [
        mesh::JoinServiceCreateRequest {
            kind: 0,
            ..request.clone()
        },
        mesh::JoinServiceCreateRequest {
            key_sha256: "xy".into(),
            ..request.clone()
        },
        mesh::JoinServiceCreateRequest {
            key_sha256: String::new(),
            ..request.clone()
        },
        mesh::JoinServiceCreateRequest {
            tpm_ek_sha256: "xy".into(),
            ..request.clone()
        },
        mesh::JoinServiceCreateRequest {
            minutes: 1441,
            ..request.clone()
        },
        mesh::JoinServiceCreateRequest {
            id: "a/b".into(),
            ..request
        },
    ] {
        let refused = joins.create(bad.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{bad:?}: {refused}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_vpn_its_methods_say_so() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let mut vpn = admin::vpn_service_client::VpnServiceClient::new(node.as_admin());
    let request = admin::VpnServiceListNodesRequest { project: None };
    let refused = vpn.list_nodes(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("[vpn]"), "{refused}");
    let request = |project: &str| admin::VpnServiceAuthKeyRequest {
        project: project.into(),
        reason: "the firewall does not answer".into(),
        ..Default::default()
    };
    let refused = vpn.auth_key(request(&project)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let unknown = "00000000-0000-4000-8000-0000000000ff";
    let refused = vpn.auth_key(request(unknown)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_has_what_was_done() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let mut projects =
        api::project_service_client::ProjectServiceClient::new(node.wire(Some(&token)));
    let request = api::ProjectServiceUpdateRequest {
        project: project.clone(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: 2,
        }),
        description: Some("changed".into()),
        ..Default::default()
    };
    projects.update(request).await.unwrap();
    let inner = api::TokenServiceCreateRequest {
        tenant_roles: [("acme".to_owned(), api::TenantRole::Owner.into())].into(),
        ..Default::default()
    };
    let owner = node.token_of("acme", inner).await.1;
    let mut audits = api::audit_service_client::AuditServiceClient::new(node.wire(Some(&owner)));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let traces = loop {
        let query = api::AuditQuery {
            project: Some(project.clone()),
            ..Default::default()
        };
        let request = api::AuditServiceListRequest {
            login: "acme".into(),
            query: Some(query),
        };
        let traces = audits.list(request).await.unwrap().into_inner().traces;
        if traces.len() >= 2 || std::time::Instant::now() > until {
            break traces;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(traces.len(), 2, "{traces:?}");
    assert_eq!(traces[0].uuid, traces[1].uuid);
    assert!(
        traces[0]
            .body
            .as_deref()
            .is_some_and(|body| body.contains("changed"))
    );
    assert_eq!(traces[1].result_code, Some(0));
    assert_eq!(traces[1].source_ip, "127.0.0.1");
    node.stop().await;
}
