//! The public services, one file a resource, both the tenants' and the administrators' side.

mod audit;
mod audit_trail;
mod backup;
mod bmc_claim;
mod ca;
mod cluster;
mod component;
mod doctor;
mod filesystem;
mod grpc;
mod identity;
mod image;
mod info;
mod invite;
mod ip;
mod join;
mod login_user;
mod machine;
mod method;
mod network;
mod partition;
mod policy;
mod project;
mod project_component;
mod quota;
mod restored;
mod settings;
mod size;
mod size_image_constraint;
mod size_reservation;
mod switch;
mod task;
mod tenant;
mod token;
mod token_use;
mod user;
mod vpn;
mod watch;

use std::sync::Arc;

use control_gate::ServiceContext;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh_admin;
use tonic::service::RoutesBuilder;
use tonic::{Response, Status};

use crate::node::NodeContext;

/// What a handler answers.
type Answer<T> = Result<Response<T>, Status>;

/// All services for users; cheap to clone.
#[derive(Debug, Clone)]
pub struct Services {
    gate: Arc<ServiceContext>,
    node: Arc<NodeContext>,
}

impl Services {
    /// Services over the shared parts.
    pub fn new(gate: Arc<ServiceContext>, node: Arc<NodeContext>) -> Self {
        Self { gate, node }
    }

    /// Adds the services to routes of gRPC; the front stands before them.
    pub fn add_to(&self, routes: &mut RoutesBuilder) {
        macro_rules! add {
            ($($package:ident :: $module:ident :: $server:ident),* $(,)?) => {
                $(routes.add_service($package::$module::$server::new(self.clone())
                    .max_decoding_message_size(control_front::MESSAGE_BYTES_MAX + 5));)*
            };
        }
        add!(
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
            mesh_admin::audit_trail_service_server::AuditTrailServiceServer,
            mesh_admin::backup_service_server::BackupServiceServer,
            mesh_admin::bmc_claim_service_server::BmcClaimServiceServer,
            mesh_admin::ca_service_server::CaServiceServer,
            mesh_admin::cluster_service_server::ClusterServiceServer,
            mesh_admin::doctor_service_server::DoctorServiceServer,
            mesh_admin::identity_service_server::IdentityServiceServer,
            mesh_admin::join_service_server::JoinServiceServer,
            mesh_admin::login_user_service_server::LoginUserServiceServer,
            mesh_admin::policy_service_server::PolicyServiceServer,
            mesh_admin::project_component_service_server::ProjectComponentServiceServer,
            mesh_admin::quota_service_server::QuotaServiceServer,
            mesh_admin::settings_service_server::SettingsServiceServer,
            mesh_admin::token_use_service_server::TokenUseServiceServer,
            mesh_admin::watch_service_server::WatchServiceServer,
        );
        self::grpc::add(routes, self);
    }
}

/// Wraps an answer.
fn ok<T>(message: T) -> Answer<T> {
    Ok(Response::new(message))
}
