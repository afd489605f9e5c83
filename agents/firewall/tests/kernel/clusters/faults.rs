//! Sources whose cluster refuses: their words, and what they do then. Needs no root.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_firewall::config::{Config, SourceName};
use agents_firewall::source::{CollectedObjects, SourceSet};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::memory_server::{ServerKey, serve};
use super::server::{TOKEN, kubeconfig};
use super::storage::Storage;

const DEADLINE: Duration = Duration::from_secs(60);
const POLICIES: &str = "/apis/metal-stack.io/v1/namespaces/firewall/clusterwidenetworkpolicies";

/// A server on loopback, and the sources that follow it.
struct Cluster {
    storage: Arc<Mutex<Storage>>,
    folder: tempfile::TempDir,
    pem: String,
    port: u16,
    sources: SourceSet,
    collected: CollectedObjects,
    _server: JoinSet<()>,
}

impl Cluster {
    async fn new() -> Self {
        let key = Arc::new(ServerKey::new());
        let storage = Arc::new(Mutex::new(Storage::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut server = JoinSet::new();
        server.spawn(serve(listener, Arc::clone(&key), Arc::clone(&storage)));
        Self {
            storage,
            folder: tempfile::tempdir().unwrap(),
            pem: key.pem.clone(),
            port,
            sources: SourceSet::default(),
            collected: CollectedObjects::default(),
            _server: server,
        }
    }

    fn create(&self, list: &str, name: &str, spec: &Value) {
        let body = json!({ "metadata": { "name": name }, "spec": spec });
        let mut storage = self.storage.lock().unwrap();
        let (status, answer) = storage.request("POST", list, &body);
        assert_eq!(status, 201, "{answer}");
    }

    fn follow(&mut self, namespace: &str, user: &str) {
        let path = self.folder.path().join("kubeconfig");
        fs::write(&path, kubeconfig(&self.pem, self.port, user)).unwrap();
        let path = path.display();
        let text = format!(
            "name: fw
sources:
  seed: {{kubeconfig: {path}, namespace: {namespace}}}
  shoot: {{kubeconfig: {path}, namespace: {namespace}}}
controllers:
  firewall: {{source: seed}}
  cwnp: {{source: shoot}}
"
        );
        // Another configuration first, so that every case starts its sources anew.
        let nothing = "sources: {static: {}}\ncontrollers: {firewall: {source: static}}";
        let nothing = Config::parse(nothing).unwrap();
        self.sources.follow(&nothing, &self.collected);
        let config = Config::parse(&text).unwrap();
        self.sources.follow(&config, &self.collected);
    }

    async fn await_that(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                self.sources.collect(&mut self.collected);
                if holds(self) {
                    return;
                }
                self.sources.changed().await;
            }
        };
        assert!(
            timeout(DEADLINE, waiting).await.is_ok(),
            "{what} does not come"
        );
    }

    async fn await_fault(&mut self, source: SourceName, text: &str) {
        let says = |own: &Self| {
            own.sources
                .fault(source)
                .is_some_and(|own| own.contains(text))
        };
        self.await_that(text, says).await;
    }

    fn policies(&self) -> Option<usize> {
        let objects = self.collected.of(SourceName::Shoot)?;
        Some(objects.cwnp.policies.len())
    }
}

async fn go_through_faults() {
    let mut cluster = Cluster::new().await;
    let token = format!("token: {TOKEN}");
    for (namespace, user, expected) in [
        ("firewall", "exec: {command: sh}", "users[0].user.exec: "),
        ("firewall", "token: other", "does not accept the credential"),
        (
            "forbidden",
            &token,
            "may not list clusterwidenetworkpolicies.metal-stack.io in the namespace forbidden",
        ),
        ("firewall", &token, "the namespace firewall does not exist"),
    ] {
        cluster.follow(namespace, user);
        cluster.await_fault(SourceName::Shoot, expected).await;
        assert_eq!(cluster.policies(), None);
    }
    // The namespace comes: an empty list is an answer now, and a missing Firewall is none.
    cluster.create("/api/v1/namespaces", "firewall", &Value::Null);
    cluster
        .await_that("an answer", |own| own.policies() == Some(0))
        .await;
    assert_eq!(cluster.sources.fault(SourceName::Shoot), None);
    cluster
        .await_fault(SourceName::Seed, "there is no Firewall fw")
        .await;
    cluster.create(POLICIES, "a", &json!({}));
    cluster
        .await_that("a policy", |own| own.policies() == Some(1))
        .await;
    // A watch that is too old is followed by a list, and is no fault.
    cluster.storage.lock().unwrap().expire();
    cluster.create(POLICIES, "b", &json!({}));
    cluster
        .await_that("the list", |own| own.policies() == Some(2))
        .await;
    assert_eq!(cluster.sources.fault(SourceName::Shoot), None);
}

#[test]
fn a_cluster_that_refuses_says_why_and_changes_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(go_through_faults());
}
