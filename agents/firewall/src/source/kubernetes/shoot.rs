use serde_norway::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::monitor::MonitorWriter;
use super::reflector::{Reflector, ResourceState};
use super::resource::WatchedResource;
use super::status::StatusWriter;
use super::store::StoredObject;
use super::{KubernetesObject, policy_value, service_value};
use crate::config::{KubernetesSource, PolicyLists};
use crate::source::{SourceLink, SourceObjects};

/// The controllers that take their objects from the shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShootParts {
    /// `true` for `cwnp`.
    pub(crate) policies: bool,
    /// `true` for `service`.
    pub(crate) services: bool,
    /// Name of the `FirewallMonitor`. `None` without the controller `monitor`.
    pub(crate) monitor: Option<String>,
}

/// Follows the policies of a namespace, and the services of all namespaces. Until one of both was
/// read for the first time, its last known objects stay: a cluster may lack the kind of one.
pub(crate) async fn run_shoot(source: KubernetesSource, parts: ShootParts, link: SourceLink) {
    let policies = policies(&source.namespace);
    let writer = StatusWriter::new(source.kubeconfig.clone(), policies.clone());
    let mut tasks = JoinSet::new();
    let mut follow = |resource: Option<WatchedResource>| {
        let resource = resource?;
        let reflector = Reflector::new(source.kubeconfig.clone(), resource);
        let state = reflector.subscribe();
        tasks.spawn(reflector.run(link.stop().clone()));
        Some(state)
    };
    let mut policies = follow(parts.policies.then_some(policies));
    let mut services = follow(parts.services.then_some(services()));
    if let Some(state) = &policies {
        tasks.spawn(writer.run(state.clone(), link.applied(), link.stop().clone()));
    }
    if let Some(name) = &parts.monitor {
        let monitor = MonitorWriter::new(source.kubeconfig.clone(), &source.namespace, name);
        tasks.spawn(monitor.run(link.reports(), link.stop().clone()));
    }
    loop {
        let policies_now = newest(&mut policies);
        let services_now = newest(&mut services);
        report(&policies_now, &services_now, &link);
        tokio::select! {
            () = changed(&mut policies) => {}
            () = changed(&mut services) => {}
            () = link.stop().cancelled() => return,
        }
    }
}

fn newest(state: &mut Option<watch::Receiver<ResourceState>>) -> ResourceState {
    let state = state
        .as_mut()
        .map(|state| state.borrow_and_update().clone());
    state.unwrap_or_default()
}

async fn changed(state: &mut Option<watch::Receiver<ResourceState>>) {
    if let Some(state) = state
        && state.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

fn report(policies: &ResourceState, services: &ResourceState, link: &SourceLink) {
    let old = link.last();
    let list = |state: &ResourceState| -> Option<Vec<Value>> {
        let objects = state.objects.as_ref()?;
        Some(
            objects
                .values()
                .map(|object| object.value.clone())
                .collect(),
        )
    };
    let new_policies = list(policies);
    let new_services = list(services);
    if new_policies.is_some() || new_services.is_some() {
        link.deliver(SourceObjects {
            cwnp: PolicyLists {
                policies: new_policies.unwrap_or_else(|| old.cwnp.policies.clone()),
                ..PolicyLists::default()
            },
            service: new_services.unwrap_or_else(|| old.service.clone()),
            ..SourceObjects::default()
        });
    }
    let faults: Vec<&str> = [policies, services]
        .into_iter()
        .filter_map(|state| state.fault.as_deref())
        .collect();
    match faults.as_slice() {
        [] => {}
        // One server that is gone is one fault.
        [first, second] if first == second => link.fail((*first).to_owned()),
        all => link.fail(all.join("; ")),
    }
}

fn policies(namespace: &str) -> WatchedResource {
    WatchedResource {
        path: format!("/apis/metal-stack.io/v1/namespaces/{namespace}/clusterwidenetworkpolicies"),
        namespace: Some(namespace.to_owned()),
        name: None,
        kind: "clusterwidenetworkpolicies.metal-stack.io",
        convert: convert_policy,
    }
}

fn services() -> WatchedResource {
    WatchedResource {
        path: "/api/v1/services".to_owned(),
        namespace: None,
        name: None,
        kind: "services",
        convert: convert_service,
    }
}

fn convert_policy(object: &KubernetesObject) -> Option<StoredObject> {
    let state = object.status.get("state").and_then(|state| state.as_str());
    Some(StoredObject {
        value: policy_value(object),
        state: state.unwrap_or_default().to_owned(),
    })
}

fn convert_service(object: &KubernetesObject) -> Option<StoredObject> {
    Some(StoredObject {
        value: service_value(object)?,
        state: String::new(),
    })
}
