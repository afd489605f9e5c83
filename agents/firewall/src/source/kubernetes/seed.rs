use tokio::task::JoinSet;

use super::reflector::{Reflector, ResourceState};
use super::resource::WatchedResource;
use super::store::StoredObject;
use super::{KubernetesObject, firewall_spec};
use crate::config::{FirewallSpec, KubernetesSource};
use crate::source::{SourceLink, SourceObjects};

/// Follows the `Firewall` with that name.
pub(crate) async fn run_seed(source: KubernetesSource, name: String, link: SourceLink) {
    let resource = WatchedResource {
        path: format!(
            "/apis/firewall.metal-stack.io/v2/namespaces/{}/firewalls",
            source.namespace
        ),
        namespace: Some(source.namespace.clone()),
        name: Some(name.clone()),
        kind: "firewalls.firewall.metal-stack.io",
        convert,
    };
    let reflector = Reflector::new(source.kubeconfig, resource);
    let mut state = reflector.subscribe();
    let mut tasks = JoinSet::new();
    tasks.spawn(reflector.run(link.stop().clone()));
    loop {
        let now = state.borrow_and_update().clone();
        report(&now, &name, &source.namespace, &link);
        tokio::select! {
            changed = state.changed() => if changed.is_err() { return },
            () = link.stop().cancelled() => return,
        }
    }
}

fn report(state: &ResourceState, name: &str, namespace: &str, link: &SourceLink) {
    if let Some(fault) = &state.fault {
        link.fail(fault.clone());
        return;
    }
    let Some(objects) = &state.objects else {
        return;
    };
    let Some(object) = objects.iter().find(|(key, _)| key.name == name) else {
        link.fail(format!(
            "there is no Firewall {name} in the namespace {namespace}; create it, or correct \
             `name` and sources.seed.namespace"
        ));
        return;
    };
    match serde_norway::from_value::<FirewallSpec>(object.1.value.clone()) {
        Ok(firewall) => link.deliver(SourceObjects {
            firewall,
            ..SourceObjects::default()
        }),
        Err(_) => link.fail(format!(
            "the Firewall {name} has no status.firewallNetworks yet; wait for the \
             firewall-controller-manager"
        )),
    }
}

/// A `Firewall` whose status is not complete is kept as a value without a specification, so that its
/// reason can be told.
fn convert(object: &KubernetesObject) -> Option<StoredObject> {
    let spec = firewall_spec(object).and_then(|spec| serde_norway::to_value(spec).ok());
    Some(StoredObject {
        value: spec.unwrap_or(serde_norway::Value::Null),
        state: String::new(),
    })
}
