//! Quotas from outside, over gRPC.

use mesh::quota_service_client::QuotaServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::node::Node;

#[tokio::test(flavor = "multi_thread")]
async fn a_project_sees_its_quota_and_gets_no_more() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let (_, other) = node.tenant("other").await;
    let network = node.network(&token, &project).await;
    let mut admin = QuotaServiceClient::new(node.as_admin());
    let mut tenant = QuotaServiceClient::new(node.wire(Some(&token)));

    let quota = mesh::Quota {
        subject: Some(mesh::quota::Subject::Project(project.clone())),
        limits: Some(mesh::Amounts {
            ips: Some(1),
            machines_of_size: [("small".to_owned(), 2)].into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let set = mesh::QuotaServiceSetRequest { quota: Some(quota) };
    let refused = tenant.set(set.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    admin.set(set).await.unwrap();

    let mut ips = api::ip_service_client::IpServiceClient::new(node.wire(Some(&token)));
    let create = api::IpServiceCreateRequest {
        network,
        project: project.clone(),
        ..Default::default()
    };
    ips.create(create.clone()).await.unwrap();
    let refused = ips.create(create).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let wanted = "has 1 of 1 ips and wants 1 more";
    assert!(refused.message().contains(wanted), "{}", refused.message());

    let look = mesh::QuotaServiceProjectRequest {
        project: project.clone(),
    };
    let seen = tenant.project(look.clone()).await.unwrap().into_inner();
    let used = seen.quota.unwrap().used.unwrap();
    assert_eq!((used.ips, used.networks), (Some(1), None));
    assert_eq!(used.machines_of_size["small"], 0);
    assert!(seen.tenant.is_none());
    let mut stranger = QuotaServiceClient::new(node.wire(Some(&other)));
    let unseen = stranger.project(look.clone()).await.unwrap_err();
    assert_eq!(unseen.code(), Code::NotFound);

    let all = admin.list(mesh::QuotaServiceListRequest {}).await.unwrap();
    assert_eq!(all.into_inner().quotas.len(), 1);
    let subject = mesh::quota_service_remove_request::Subject::Project(project);
    let remove = mesh::QuotaServiceRemoveRequest {
        subject: Some(subject),
    };
    admin.remove(remove.clone()).await.unwrap();
    let gone = admin.remove(remove).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let seen = tenant.project(look).await.unwrap().into_inner();
    assert!(seen.quota.is_none());
    node.stop().await;
}
