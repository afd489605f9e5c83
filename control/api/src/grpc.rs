//! The services that gRPC defines for every server: health for probes, reflection for generic
//! clients such as grpcurl.

use futures::{StreamExt, stream};
use proto_public::grpc::health::v1::health_check_response::ServingStatus;
use proto_public::grpc::health::v1::health_server::{Health, HealthServer};
use proto_public::grpc::health::v1::{
    HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse,
};
use tokio::sync::Semaphore;
use tonic::codegen::BoxStream;
use tonic::service::RoutesBuilder;
use tonic::{Request, Response, Status};
use tonic_reflection::server::Builder;

use crate::services::{ApiResult, Services, ok};

/// Most open watches of health on a node. They need no token, so that there is one bound for all;
/// beyond it a watch is refused.
const WATCHES_MAX: usize = 256;
static WATCHES: Semaphore = Semaphore::const_new(WATCHES_MAX);

/// Adds both services to the routes.
pub(crate) fn add(routes: &mut RoutesBuilder, services: &Services) {
    routes.add_service(HealthServer::new(services.clone()));
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(proto_public::DESCRIPTORS)
            .include_reflection_service(false)
    };
    match (builder().build_v1(), builder().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => {
            routes.add_service(v1).add_service(v1alpha);
        }
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(error = %error, "reflection is not served");
        }
    }
}

/// A known service can be called as long as this node answers. Whether control works is the subject
/// of `metalstack.api.v2.HealthService`.
fn status(service: &str) -> ServingStatus {
    let is_there =
        service.is_empty() || proto_public::pool().get_service_by_name(service).is_some();
    if is_there {
        ServingStatus::Serving
    } else {
        ServingStatus::ServiceUnknown
    }
}

fn told(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

#[tonic::async_trait]
impl Health for Services {
    async fn check(&self, request: Request<HealthCheckRequest>) -> ApiResult<HealthCheckResponse> {
        let service = request.into_inner().service;
        match status(&service) {
            ServingStatus::ServiceUnknown => Err(Status::not_found(format!(
                "there is no service {service:?}; ServerReflection lists all"
            ))),
            status => ok(told(status)),
        }
    }

    async fn list(&self, _request: Request<HealthListRequest>) -> ApiResult<HealthListResponse> {
        let services = proto_public::methods().iter().map(|method| &method.service);
        let statuses = services.map(|name| (name.clone(), told(status(name))));
        ok(HealthListResponse {
            statuses: statuses.collect(),
        })
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> ApiResult<BoxStream<HealthCheckResponse>> {
        let place = WATCHES
            .try_acquire()
            .map_err(|_| Status::resource_exhausted("too many watches of health"))?;
        // The status changes only when this node stops, which ends the stream.
        let first = told(status(&request.into_inner().service));
        let rest = stream::once(async move {
            let _place = place;
            std::future::pending().await
        });
        let all = stream::iter([Ok(first)]).chain(rest);
        Ok(Response::new(Box::pin(all)))
    }
}
