//! Version and health: what anybody may ask.

use control_state::Tables;
use proto_public::api::v2::health_service_server::HealthService;
use proto_public::api::v2::version_service_server::VersionService;
use proto_public::api::v2::{
    Health, HealthServiceGetRequest, HealthServiceGetResponse, HealthStatus, PartitionHealth,
    Service, ServiceStatus, Version, VersionServiceGetRequest, VersionServiceGetResponse,
};
use tonic::Request;

use super::{Answer, Services, ok};

#[tonic::async_trait]
impl VersionService for Services {
    async fn get(
        &self,
        _request: Request<VersionServiceGetRequest>,
    ) -> Answer<VersionServiceGetResponse> {
        let version = Version {
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
            revision: option_env!("METALMESH_REVISION")
                .unwrap_or_default()
                .to_owned(),
            git_sha1: option_env!("METALMESH_GIT_SHA1")
                .unwrap_or_default()
                .to_owned(),
            build_date: option_env!("METALMESH_BUILD_DATE")
                .unwrap_or_default()
                .to_owned(),
        };
        ok(VersionServiceGetResponse {
            version: Some(version),
        })
    }
}

#[tonic::async_trait]
impl HealthService for Services {
    /// Reads the state with a majority: an answer is the proof that control works.
    async fn get(
        &self,
        _request: Request<HealthServiceGetRequest>,
    ) -> Answer<HealthServiceGetResponse> {
        let machines = self.0.store.read(machines_health).await;
        let store = if machines.is_ok() {
            (ServiceStatus::Healthy, String::new())
        } else {
            (
                ServiceStatus::Unhealthy,
                "the replicated store does not answer".to_owned(),
            )
        };
        // One store carries what elsewhere are services of their own.
        let parts = [
            Service::Ipam,
            Service::TenantApiserver,
            Service::Audit,
            Service::Tasks,
        ];
        let mut services: Vec<HealthStatus> = parts
            .into_iter()
            .map(|part| HealthStatus {
                name: part.into(),
                status: store.0.into(),
                message: store.1.clone(),
                partitions: Default::default(),
            })
            .collect();
        services.extend(machines.ok());
        if let Some(vpn) = &self.0.vpn {
            services.push(vpn_health(self.0.vpn_health.of(vpn.as_ref()).await));
        }
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
        message: found.err().unwrap_or_default().to_owned(),
        partitions: Default::default(),
    }
}

/// Health of the machines, by partition: dead ones make it degraded.
fn machines_health(tables: &Tables) -> HealthStatus {
    let mut health = HealthStatus {
        name: Service::Machines.into(),
        status: ServiceStatus::Healthy.into(),
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
            0 => (ServiceStatus::Healthy, String::new()),
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
