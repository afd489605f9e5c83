//! Version, health and reflection of a node.

use crate::node::Node;

/// Version and health as dashboards read them.
#[tokio::test(flavor = "multi_thread")]
async fn version_and_health_are_whole() {
    use api::health_service_client::HealthServiceClient;
    use api::version_service_client::VersionServiceClient;
    use proto_public::api::v2 as api;

    let node = Node::start().await;
    let mut versions = VersionServiceClient::new(node.wire(None));
    let said = versions.get(api::VersionServiceGetRequest {}).await;
    let version = said.unwrap().into_inner().version.unwrap();
    for (name, text) in [
        ("version", &version.version),
        ("revision", &version.revision),
        ("git_sha1", &version.git_sha1),
        ("build_date", &version.build_date),
    ] {
        assert!(!text.is_empty(), "{name}");
    }
    assert!(version.build_date.ends_with('Z'), "{}", version.build_date);

    let mut health = HealthServiceClient::new(node.wire(None));
    let said = health.get(api::HealthServiceGetRequest {}).await;
    let services = said.unwrap().into_inner().health.unwrap().services;
    use api::Service::{Audit, Ipam, Machines, Redis, Rethink, Tasks, TenantApiserver};
    let names: Vec<api::Service> = services.iter().map(|service| service.name()).collect();
    // In the order of their numbers; the VPN only where there is one.
    assert_eq!(
        names,
        [
            Ipam,
            Rethink,
            TenantApiserver,
            Machines,
            Audit,
            Redis,
            Tasks
        ]
    );
    for service in services {
        assert_eq!(service.status(), api::ServiceStatus::Healthy);
        assert!(!service.message.is_empty(), "{service:?}");
    }
    node.stop().await;
}

/// Calls of grpcurl and Kubernetes probes, without a token.
#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_for_everybody() {
    use futures::StreamExt;
    use proto_public::grpc::health::v1::health_check_response::ServingStatus;
    use proto_public::grpc::health::v1::health_client::HealthClient;
    use proto_public::grpc::health::v1::{HealthCheckRequest, HealthListRequest};
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let node = Node::start().await;
    let mut health = HealthClient::new(node.wire(None));
    let of = |service: &str| HealthCheckRequest {
        service: service.into(),
    };
    for service in ["", "metalstack.api.v2.MachineService"] {
        let said = health.check(of(service)).await.unwrap().into_inner();
        assert_eq!(said.status(), ServingStatus::Serving);
        let mut watch = health.watch(of(service)).await.unwrap().into_inner();
        let said = watch.next().await.unwrap().unwrap();
        assert_eq!(said.status(), ServingStatus::Serving);
    }
    let all = health.list(HealthListRequest {}).await.unwrap();
    let all = all.into_inner().statuses;
    for service in ["grpc.health.v1.Health", "metalstack.api.v2.MachineService"] {
        assert_eq!(all[service].status(), ServingStatus::Serving);
    }
    let refusal = health.check(of("NoService")).await.unwrap_err();
    assert_eq!(refusal.code(), tonic::Code::NotFound);
    let mut watch = health.watch(of("NoService")).await.unwrap().into_inner();
    let said = watch.next().await.unwrap().unwrap();
    assert_eq!(said.status(), ServingStatus::ServiceUnknown);

    let mut reflection = ServerReflectionClient::new(node.wire(None));
    // The second question is asked after the first answer: both ways are open at once.
    let (mut ask, questions) = futures::channel::mpsc::channel(1);
    let answers = reflection.server_reflection_info(questions);
    let question = |message| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message),
    };
    ask.try_send(question(MessageRequest::ListServices(String::new())))
        .unwrap();
    let mut answers = answers.await.unwrap().into_inner();
    let said = answers.next().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = said.message_response else {
        panic!("{said:?}");
    };
    let published = list
        .service
        .iter()
        .filter(|service| service.name.starts_with("metalstack."))
        .count();
    assert_eq!(published, 39);
    // The details of errors among them: grpcurl asks for them in order to print them.
    for symbol in [
        "metalstack.api.v2.MachineService",
        "google.rpc.ErrorInfo",
        "google.rpc.RetryInfo",
        "buf.validate.Violations",
    ] {
        let symbol = MessageRequest::FileContainingSymbol(symbol.to_owned());
        ask.try_send(question(symbol)).unwrap();
        let said = answers.next().await.unwrap().unwrap();
        let Some(MessageResponse::FileDescriptorResponse(file)) = said.message_response else {
            panic!("{said:?}");
        };
        assert!(!file.file_descriptor_proto.is_empty());
    }
    drop(ask);
    assert!(answers.next().await.is_none());
    node.stop().await;
}
