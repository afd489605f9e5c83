//! The services of administrators: `metalstack.admin.v2`.

mod audit;
mod component;
mod filesystem;
mod image;
mod ip;
mod machine;
mod network;
mod partition;
mod project;
mod size;
mod size_image_constraint;
mod size_reservation;
mod switch;
mod task;
mod tenant;
mod token;
mod vpn;

use proto_public::admin::v2 as admin;
use tonic::service::RoutesBuilder;

use crate::services::{Services, add_services};

/// Adds the services to routes of gRPC.
pub(crate) fn add(routes: &mut RoutesBuilder, services: &Services) {
    add_services!(
        routes,
        services,
        [
            admin::audit_service_server::AuditServiceServer,
            admin::component_service_server::ComponentServiceServer,
            admin::filesystem_service_server::FilesystemServiceServer,
            admin::image_service_server::ImageServiceServer,
            admin::ip_service_server::IpServiceServer,
            admin::machine_service_server::MachineServiceServer,
            admin::network_service_server::NetworkServiceServer,
            admin::partition_service_server::PartitionServiceServer,
            admin::project_service_server::ProjectServiceServer,
            admin::size_image_constraint_service_server::SizeImageConstraintServiceServer,
            admin::size_reservation_service_server::SizeReservationServiceServer,
            admin::size_service_server::SizeServiceServer,
            admin::switch_service_server::SwitchServiceServer,
            admin::task_service_server::TaskServiceServer,
            admin::tenant_service_server::TenantServiceServer,
            admin::token_service_server::TokenServiceServer,
            admin::vpn_service_server::VpnServiceServer,
        ]
    );
}
