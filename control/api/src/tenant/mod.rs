//! The services of tenants: `metalstack.api.v2`, and `metalmesh.tenant.v1` of our own.

mod audit;
mod claim;
mod claim_watch;
mod filesystem;
mod image;
mod info;
mod invite;
mod ip;
mod machine;
mod method;
mod network;
mod partition;
mod project;
mod size;
mod size_image_constraint;
mod size_reservation;
mod tenants;
mod token;
mod user;

use proto_public::api::v2 as api;
use proto_public::metalmesh::tenant::v1 as own;
use tonic::service::RoutesBuilder;

use crate::services::{Services, add_services};

/// Adds the services to routes of gRPC.
pub(crate) fn add(routes: &mut RoutesBuilder, services: &Services) {
    add_services!(
        routes,
        services,
        [
            api::audit_service_server::AuditServiceServer,
            api::filesystem_service_server::FilesystemServiceServer,
            api::health_service_server::HealthServiceServer,
            api::image_service_server::ImageServiceServer,
            api::ip_service_server::IpServiceServer,
            api::machine_service_server::MachineServiceServer,
            api::method_service_server::MethodServiceServer,
            api::network_service_server::NetworkServiceServer,
            api::partition_service_server::PartitionServiceServer,
            api::project_service_server::ProjectServiceServer,
            api::size_image_constraint_service_server::SizeImageConstraintServiceServer,
            api::size_reservation_service_server::SizeReservationServiceServer,
            api::size_service_server::SizeServiceServer,
            api::tenant_service_server::TenantServiceServer,
            api::token_service_server::TokenServiceServer,
            api::user_service_server::UserServiceServer,
            api::version_service_server::VersionServiceServer,
            own::claim_service_server::ClaimServiceServer,
        ]
    );
}
