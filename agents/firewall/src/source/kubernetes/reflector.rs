use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base_runtime::{Backoff, Chain};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::resource::WatchedResource;
use super::store::{BYTES_MAX, ObjectStore, StoredObject};
use super::{
    Kubeconfig, KubeconfigError, KubernetesClient, KubernetesError, ObjectKey, ObjectList,
    WatchEvent,
};

/// Objects of a page of a list.
const PAGE_MAX: usize = 500;
/// The server ends a watch after so many seconds; then a new one begins where it ended.
const WATCH_SECONDS: u64 = 290;
/// Pause before a failed list or watch is tried again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// Silence after which events are passed on together: each of them costs a comparison of all rules.
const GATHER: Duration = Duration::from_millis(10);
/// Most events that are passed on together, so that a server that never pauses delays nothing.
const GATHER_MAX: usize = 1000;
/// Shortest time between two watches, if the server ends them at once.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// Why a resource is not followed.
#[derive(Debug, thiserror::Error)]
enum ReflectorError {
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
}

/// The state of a resource, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceState {
    /// The newest objects. `None` if none were ever read.
    pub(super) objects: Option<Arc<BTreeMap<ObjectKey, Arc<StoredObject>>>>,
    /// The reason why the server does not answer now.
    pub(super) fault: Option<String>,
}

/// Follows the objects of one kind.
#[derive(Debug)]
pub(super) struct Reflector {
    kubeconfig: PathBuf,
    resource: WatchedResource,
    state: watch::Sender<ResourceState>,
}

impl Reflector {
    pub(super) fn new(kubeconfig: PathBuf, resource: WatchedResource) -> Self {
        Self {
            kubeconfig,
            resource,
            state: watch::Sender::new(ResourceState::default()),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<ResourceState> {
        self.state.subscribe()
    }

    /// Lists and watches until it is stopped.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let mut is_listed = false;
            let error = tokio::select! {
                error = self.follow(&mut is_listed) => error,
                () = stop.cancelled() => return,
            };
            if is_listed {
                failures = 0;
            }
            // A watch that is too old is nothing to report: the next list is newer.
            if !matches!(error, ReflectorError::Kubernetes(KubernetesError::Expired)) {
                let reason = Chain(&error).to_string();
                self.state
                    .send_modify(|state| state.fault = Some(reason.clone()));
            }
            tokio::select! {
                () = sleep(BACKOFF.pause(failures)) => failures += 1,
                () = stop.cancelled() => return,
            }
        }
    }

    /// Follows the objects until something fails.
    async fn follow(&self, is_listed: &mut bool) -> ReflectorError {
        let client = match Kubeconfig::load(&self.kubeconfig) {
            // Read anew each time: the credential may have been renewed.
            Ok(kubeconfig) => KubernetesClient::new(kubeconfig),
            Err(error) => return error.into(),
        };
        let (mut store, mut version) = match self.list(&client).await {
            Ok(listed) => listed,
            Err(error) => return error.into(),
        };
        *is_listed = true;
        self.publish(&store);
        loop {
            if let Err(error) = self.watch(&client, &mut store, &mut version).await {
                return error.into();
            }
            sleep(WATCH_PAUSE).await;
        }
    }

    /// Reads the whole list, and the version that it shows.
    async fn list(
        &self,
        client: &KubernetesClient,
    ) -> Result<(ObjectStore, String), KubernetesError> {
        let what = self.resource.what("list");
        let mut store = ObjectStore::default();
        let mut rest = BYTES_MAX;
        let mut next = String::new();
        loop {
            let path = self.resource.list_path(PAGE_MAX, &next);
            let bytes = client.get(&path, &what, rest).await?;
            rest = rest.saturating_sub(bytes.len());
            let page = ObjectList::decode(&bytes)?;
            let share = bytes.len() / page.objects.len().max(1);
            let is_last = page.next.is_empty() || page.objects.is_empty();
            for object in page.objects {
                store.carry_out(WatchEvent::Put(object), self.resource.convert, share)?;
            }
            if is_last {
                self.check_namespace(client, &store).await?;
                return Ok((store, page.version));
            }
            next = page.next;
        }
    }

    /// Refuses an empty list of a namespace that does not exist: an API server does not, and its
    /// rules would all be removed.
    async fn check_namespace(
        &self,
        client: &KubernetesClient,
        store: &ObjectStore,
    ) -> Result<(), KubernetesError> {
        let Some(namespace) = &self.resource.namespace else {
            return Ok(());
        };
        if !store.objects().is_empty() {
            return Ok(());
        }
        let path = format!("/api/v1/namespaces/{}", super::resource::escaped(namespace));
        match client.get(&path, "read the namespace", 1 << 20).await {
            Err(KubernetesError::NotFound { .. }) => Err(KubernetesError::NotFound {
                what: self.resource.what("list"),
                message: format!(
                    "the namespace {namespace} does not exist; create it, or correct \
                     sources.*.namespace"
                ),
            }),
            // The credential need not be allowed to read namespaces.
            Ok(_) | Err(KubernetesError::Denied { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Carries out the events of one watch.
    async fn watch(
        &self,
        client: &KubernetesClient,
        store: &mut ObjectStore,
        version: &mut String,
    ) -> Result<(), KubernetesError> {
        let what = self.resource.what("watch");
        let path = self.resource.watch_path(version, WATCH_SECONDS);
        let mut lines = client.watch(&path, &what).await?;
        let mut is_changed = false;
        let mut gathered = 0;
        loop {
            // Events that follow each other closely are passed on together.
            let next = if is_changed && gathered < GATHER_MAX {
                timeout(GATHER, lines.next()).await.ok()
            } else if is_changed {
                None
            } else {
                Some(lines.next().await)
            };
            let Some(next) = next else {
                self.publish(store);
                (is_changed, gathered) = (false, 0);
                continue;
            };
            if is_changed && !matches!(next, Ok(Some(_))) {
                self.publish(store);
            }
            let Some(line) = next? else {
                return Ok(());
            };
            let event = WatchEvent::decode(&line, &what)?;
            if !event.version().is_empty() {
                event.version().clone_into(version);
            }
            is_changed |= store.carry_out(event, self.resource.convert, line.len())?;
            gathered += 1;
        }
    }

    fn publish(&self, store: &ObjectStore) {
        let objects = Arc::new(store.objects().clone());
        self.state.send_replace(ResourceState {
            objects: Some(objects),
            fault: None,
        });
    }
}
