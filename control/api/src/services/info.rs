//! Version, health, methods: what anybody may ask.

use control_state::Tables;
use proto_public::api::v2::health_service_server::HealthService;
use proto_public::api::v2::method_service_server::MethodService;
use proto_public::api::v2::version_service_server::VersionService;
use proto_public::api::v2::{
    Health, HealthServiceGetRequest, HealthServiceGetResponse, HealthStatus, MethodPermission,
    MethodServiceListRequest, MethodServiceListResponse, MethodServiceTokenScopedListRequest,
    MethodServiceTokenScopedListResponse, PartitionHealth, Service, ServiceStatus, Version,
    VersionServiceGetRequest, VersionServiceGetResponse,
};
use proto_public::{Scope, methods};
use tonic::{Request, Status};

use super::{Answer, Services, ok};
use crate::caller::Caller;
use crate::refusal::refused;
use control_state::ErrorCode;

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

#[tonic::async_trait]
impl MethodService for Services {
    async fn list(
        &self,
        _request: Request<MethodServiceListRequest>,
    ) -> Answer<MethodServiceListResponse> {
        let methods = methods().iter().map(|method| method.path.clone()).collect();
        ok(MethodServiceListResponse { methods })
    }

    async fn token_scoped_list(
        &self,
        request: Request<MethodServiceTokenScopedListRequest>,
    ) -> Answer<MethodServiceTokenScopedListResponse> {
        let caller = Caller::of(&request)?;
        let rights = &caller.principal.rights;
        ok(MethodServiceTokenScopedListResponse {
            permissions: permissions(&caller)?,
            project_roles: numbers(&rights.project_roles, |role| *role as i32),
            tenant_roles: numbers(&rights.tenant_roles, |role| *role as i32),
            machine_roles: numbers(&rights.machine_roles, |role| *role as i32),
            admin_role: rights.admin_role.map(Into::into),
            infra_role: rights.infra_role.map(Into::into),
        })
    }
}

fn numbers<R>(
    roles: &std::collections::BTreeMap<String, R>,
    number: impl Fn(&R) -> i32,
) -> std::collections::HashMap<String, i32> {
    roles
        .iter()
        .map(|(subject, role)| (subject.clone(), number(role)))
        .collect()
}

/// Methods by subject: those that the token lists, and those that its roles bring.
fn permissions(caller: &Caller) -> Result<Vec<MethodPermission>, Status> {
    if caller.user.is_empty() {
        return Err(refused(ErrorCode::Unauthenticated, "a token is needed"));
    }
    let rights = &caller.principal.rights;
    let by = |fits: &dyn Fn(&Scope) -> bool| -> Vec<String> {
        let fitting = methods().iter().filter(|method| fits(&method.scope));
        fitting.map(|method| method.path.clone()).collect()
    };
    let mut out: Vec<MethodPermission> = rights
        .permissions
        .iter()
        .map(|(subject, methods)| MethodPermission {
            subject: subject.to_owned(),
            methods: methods.into_iter().map(str::to_owned).collect(),
        })
        .collect();
    let mut add = |subject: &str, methods: Vec<String>| {
        if !methods.is_empty() {
            out.push(MethodPermission {
                subject: subject.to_owned(),
                methods,
            });
        }
    };
    if caller.is_admin_editor() {
        add("*", by(&|_| true));
    } else if caller.is_admin() {
        let viewer = proto_public::api::v2::AdminRole::Viewer;
        add(
            "*",
            by(&|scope| matches!(scope, Scope::Admin(roles) if roles.contains(&viewer))),
        );
    }
    add("*", by(&|scope| *scope == Scope::Public));
    for (project, role) in &rights.project_roles {
        add(
            project,
            by(&|scope| matches!(scope, Scope::Project(roles) if roles.contains(role))),
        );
    }
    for (tenant, role) in &rights.tenant_roles {
        add(
            tenant,
            by(&|scope| matches!(scope, Scope::Tenant(roles) if roles.contains(role))),
        );
    }
    for (machine, role) in &rights.machine_roles {
        add(
            machine,
            by(&|scope| matches!(scope, Scope::Machine(roles) if roles.contains(role))),
        );
    }
    Ok(out)
}
