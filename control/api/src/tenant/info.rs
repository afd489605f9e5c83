//! Version and health, for callers without a token too.

use control_state::Tables;
use proto_public::api::v2::health_service_server::HealthService;
use proto_public::api::v2::version_service_server::VersionService;
use proto_public::api::v2::{
    Health, HealthServiceGetRequest, HealthServiceGetResponse, HealthStatus, PartitionHealth,
    Service, ServiceStatus, Version, VersionServiceGetRequest, VersionServiceGetResponse,
};
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
const NONE_DEAD: &str = "no machine is dead";

#[tonic::async_trait]
impl VersionService for Services {
    async fn get(
        &self,
        _request: Request<VersionServiceGetRequest>,
    ) -> ApiResult<VersionServiceGetResponse> {
        let version = Version {
            version: VERSION.to_owned(),
            revision: env!("METALMESH_REVISION").to_owned(),
            git_sha1: env!("METALMESH_GIT_SHA1").to_owned(),
            build_date: env!("METALMESH_BUILD_DATE").to_owned(),
        };
        ok(VersionServiceGetResponse {
            version: Some(version),
        })
    }
}

#[tonic::async_trait]
impl HealthService for Services {
    /// Reads the state after a majority was asked: an answer proves that control works.
    async fn get(
        &self,
        _request: Request<HealthServiceGetRequest>,
    ) -> ApiResult<HealthServiceGetResponse> {
        let machines = self.gate.store.read(machines_health).await;
        let (status, message) = if machines.is_ok() {
            let message = format!("connected to the replicated store of metalmesh {VERSION}");
            (ServiceStatus::Healthy, message)
        } else {
            let message = "the replicated store does not answer".to_owned();
            (ServiceStatus::Unhealthy, message)
        };
        // One replicated store does the work of six services of the reference implementation.
        let parts = [
            Service::Ipam,
            Service::Rethink,
            Service::TenantApiserver,
            Service::Audit,
            Service::Redis,
            Service::Tasks,
        ];
        let mut services: Vec<HealthStatus> = parts
            .into_iter()
            .map(|part| HealthStatus {
                name: part.into(),
                status: status.into(),
                message: message.clone(),
                partitions: Default::default(),
            })
            .collect();
        services.extend(machines.ok());
        if let Some(vpn) = &self.node.vpn {
            services.push(vpn_health(self.node.vpn_health.of(vpn.as_ref()).await));
        }
        services.sort_by_key(|service| service.name);
        ok(HealthServiceGetResponse {
            health: Some(Health { services }),
        })
    }
}

fn vpn_health(found: Result<(), &'static str>) -> HealthStatus {
    let status = match found {
        Ok(()) => ServiceStatus::Healthy,
        Err(_) => ServiceStatus::Unhealthy,
    };
    HealthStatus {
        name: Service::Vpn.into(),
        status: status.into(),
        message: found.err().unwrap_or("connected to the VPN").to_owned(),
        partitions: Default::default(),
    }
}

/// Health of the machines, by partition: dead ones make it degraded.
fn machines_health(tables: &Tables) -> HealthStatus {
    let mut health = HealthStatus {
        name: Service::Machines.into(),
        status: ServiceStatus::Healthy.into(),
        message: NONE_DEAD.to_owned(),
        ..Default::default()
    };
    for partition in tables.all::<control_state::Partition>() {
        let here = tables
            .all::<control_state::Machine>()
            .filter(|machine| machine.partition.as_ref() == Some(&partition.id));
        let dead = here
            .filter_map(|machine| tables.get::<control_state::EventLog>(&machine.id))
            .filter(|log| log.liveliness == control_state::Liveliness::Dead)
            .count();
        let (status, message) = match dead {
            0 => (ServiceStatus::Healthy, NONE_DEAD.to_owned()),
            _ => (ServiceStatus::Degraded, format!("{dead} machines are dead")),
        };
        if dead > 0 {
            health.status = ServiceStatus::Degraded.into();
            health.message = "some machines are dead".to_owned();
        }
        let part = PartitionHealth {
            status: status.into(),
            message,
        };
        health.partitions.insert(partition.id.to_string(), part);
    }
    health
}
