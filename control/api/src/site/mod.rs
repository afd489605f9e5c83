//! metalmesh's own services, about the site: `metalmesh.admin.v1`.

mod audit_trail;
mod backup;
mod bmc_claim;
mod ca;
mod cluster;
mod doctor;
mod fabric;
mod firewall_explain;
mod firewall_release;
mod firewall_rules;
mod firewall_statistics;
mod firewall_try;
mod firewalls;
mod identity;
mod join;
mod leases;
mod login_user;
mod node_allocations;
mod operator_leases;
mod operator_rules;
mod policy;
mod pool;
mod project_component;
mod quota;
mod restored;
mod rollout;
mod rules_scope;
mod settings;
mod token_use;
mod watch;

use proto_public::metalmesh::admin::v1 as mesh;
use tonic::service::RoutesBuilder;

use crate::services::{Services, add_services};

/// Adds the services to routes of gRPC.
pub(crate) fn add(routes: &mut RoutesBuilder, services: &Services) {
    add_services!(
        routes,
        services,
        [
            mesh::audit_trail_service_server::AuditTrailServiceServer,
            mesh::backup_service_server::BackupServiceServer,
            mesh::bmc_claim_service_server::BmcClaimServiceServer,
            mesh::ca_service_server::CaServiceServer,
            mesh::cluster_service_server::ClusterServiceServer,
            mesh::doctor_service_server::DoctorServiceServer,
            mesh::fabric_service_server::FabricServiceServer,
            mesh::firewall_release_service_server::FirewallReleaseServiceServer,
            mesh::firewall_rules_service_server::FirewallRulesServiceServer,
            mesh::identity_service_server::IdentityServiceServer,
            mesh::join_service_server::JoinServiceServer,
            mesh::lease_service_server::LeaseServiceServer,
            mesh::login_user_service_server::LoginUserServiceServer,
            mesh::node_allocation_service_server::NodeAllocationServiceServer,
            mesh::operator_lease_service_server::OperatorLeaseServiceServer,
            mesh::operator_node_allocation_service_server::OperatorNodeAllocationServiceServer,
            mesh::operator_rules_service_server::OperatorRulesServiceServer,
            mesh::policy_service_server::PolicyServiceServer,
            mesh::pool_service_server::PoolServiceServer,
            mesh::project_component_service_server::ProjectComponentServiceServer,
            mesh::quota_service_server::QuotaServiceServer,
            mesh::rollout_service_server::RolloutServiceServer,
            mesh::settings_service_server::SettingsServiceServer,
            mesh::token_use_service_server::TokenUseServiceServer,
            mesh::watch_service_server::WatchServiceServer,
        ]
    );
}
