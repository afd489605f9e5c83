use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base_runtime::{Backoff, Chain};
use serde_json::json;
use serde_norway::Value;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::reflector::ResourceState;
use super::resource::WatchedResource;
use super::store::StoredObject;
use super::{Kubeconfig, KubernetesClient, KubernetesError, ObjectKey};
use crate::source::AppliedObjects;

/// Pause before statuses that could not be written are tried again.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// A status of a policy, with the published words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyStatus {
    /// `deployed` or `ignored`.
    pub(super) state: &'static str,
    /// The reason why it is ignored. Empty if it is deployed.
    pub(super) message: String,
}

/// The status of each policy of a snapshot, by its name. Empty if the snapshot as a whole is not in
/// force: then the tenant's objects are not the reason.
pub(super) fn policy_statuses(applied: &AppliedObjects) -> BTreeMap<String, PolicyStatus> {
    let mut statuses = BTreeMap::new();
    if applied.refusal.is_some() {
        return statuses;
    }
    let mut problems: BTreeMap<&str, String> = BTreeMap::new();
    for problem in applied.problems.iter() {
        if let Some(object) = problem.object.strip_prefix("cwnp ") {
            let name = object.rsplit_once('/').map_or(object, |(_, name)| name);
            let place = problem.rule.map_or_else(String::new, |rule| {
                let list = object.split_once('/').map_or("rules", |(list, _)| list);
                format!("{list}[{rule}]: ")
            });
            let text = format!(
                "{place}{}: {}; {}",
                problem.field, problem.problem, problem.remedy
            );
            problems.entry(name).or_insert(text);
        }
    }
    for (index, policy) in applied.objects.cwnp.policies.iter().enumerate() {
        let Some(name) = policy.get("name").and_then(Value::as_str) else {
            continue;
        };
        let unnamed = format!("policies[{index}]");
        let problem = problems
            .get(name)
            .or_else(|| problems.get(unnamed.as_str()));
        let status = match problem {
            Some(message) => PolicyStatus {
                state: "ignored",
                message: message.clone(),
            },
            None => PolicyStatus {
                state: "deployed",
                message: String::new(),
            },
        };
        statuses.insert(name.to_owned(), status);
    }
    statuses
}

/// A status that has to be written.
#[derive(Debug)]
struct WantedStatus {
    key: ObjectKey,
    status: PolicyStatus,
}

/// Writes the statuses of policies.
#[derive(Debug)]
pub(super) struct StatusWriter {
    kubeconfig: PathBuf,
    resource: WatchedResource,
    /// The status that was written last. A status that somebody else changes afterwards stays: two writers that
    /// correct each other would never end.
    written: BTreeMap<ObjectKey, PolicyStatus>,
}

impl StatusWriter {
    pub(super) fn new(kubeconfig: PathBuf, resource: WatchedResource) -> Self {
        Self {
            kubeconfig,
            resource,
            written: BTreeMap::new(),
        }
    }

    /// Writes the status of each policy whenever rules were applied, until it is stopped.
    pub(super) async fn run(
        mut self,
        mut state: watch::Receiver<ResourceState>,
        mut applied: watch::Receiver<Option<AppliedObjects>>,
        stop: CancellationToken,
    ) {
        let mut failures = 0;
        loop {
            let newest = applied.borrow_and_update().clone();
            let objects = state.borrow_and_update().objects.clone();
            let wanted = match (newest, objects) {
                (Some(newest), Some(objects)) => self.wanted(&newest, &objects),
                _ => Vec::new(),
            };
            let result = tokio::select! {
                result = self.write(wanted) => result,
                () = stop.cancelled() => return,
            };
            let Err(reason) = result else {
                failures = 0;
                tokio::select! {
                    changed = applied.changed() => if changed.is_err() { return },
                    // A policy that was made anew has no status yet.
                    changed = state.changed() => if changed.is_err() { return },
                    () = stop.cancelled() => return,
                }
                continue;
            };
            warn!(reason, "the status of policies cannot be written");
            tokio::select! {
                () = sleep(BACKOFF.pause(failures)) => failures += 1,
                () = stop.cancelled() => return,
            }
        }
    }

    /// The statuses that have to be written.
    fn wanted(
        &mut self,
        applied: &AppliedObjects,
        objects: &BTreeMap<ObjectKey, Arc<StoredObject>>,
    ) -> Vec<WantedStatus> {
        self.written.retain(|key, _| objects.contains_key(key));
        let statuses = policy_statuses(applied);
        let mut wanted = Vec::new();
        for (key, object) in objects {
            // One that came after the snapshot is decided by the next.
            let Some(status) = statuses.get(&key.name) else {
                continue;
            };
            if self.written.get(key) != Some(status) || object.state.is_empty() {
                wanted.push(WantedStatus {
                    key: key.clone(),
                    status: status.clone(),
                });
            }
        }
        wanted
    }

    async fn write(&mut self, wanted: Vec<WantedStatus>) -> Result<(), String> {
        if wanted.is_empty() {
            return Ok(());
        }
        let kubeconfig = Kubeconfig::load(&self.kubeconfig);
        let kubeconfig = kubeconfig.map_err(|error| Chain(&error).to_string())?;
        let client = KubernetesClient::new(kubeconfig);
        let what = self.resource.what("patch the status of");
        for WantedStatus { key, status } in wanted {
            let patch = json!({ "status": { "state": status.state, "message": status.message } });
            let path = self.resource.status_path(&key);
            match client.merge_patch(&path, &what, &patch).await {
                // A policy that is gone meanwhile needs none.
                Ok(()) | Err(KubernetesError::NotFound { .. }) => {
                    self.written.insert(key, status);
                }
                Err(error) => return Err(Chain(&error).to_string()),
            }
        }
        Ok(())
    }
}
