//! An API server of either kind, in the router's namespace.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::memory_server::{ServerKey, serve};
use super::real_server::RealServer;
use super::storage::Storage;
use crate::namespace::{Namespace, POLL};

/// Port of the server; its network namespace has nothing else.
pub(crate) const PORT: u16 = 6443;
/// Token of the server's administrator.
pub(crate) const TOKEN: &str = "test-token";

/// A server in this process.
struct MemoryServer {
    key: Arc<ServerKey>,
    storage: Arc<Mutex<Storage>>,
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

enum Kind {
    Memory(MemoryServer),
    Real(RealServer),
}

pub(crate) struct ApiServer {
    namespace: String,
    kind: Kind,
}

impl ApiServer {
    pub(crate) fn in_memory(at: &Namespace) -> Self {
        let mut own = Self {
            namespace: at.0.clone(),
            kind: Kind::Memory(MemoryServer {
                key: Arc::new(ServerKey::new()),
                storage: Arc::default(),
                running: None,
            }),
        };
        own.start();
        own
    }

    pub(crate) fn real(server: RealServer, at: &Namespace) -> Self {
        let own = Self {
            namespace: at.0.clone(),
            kind: Kind::Real(server),
        };
        own.await_ready();
        own
    }

    pub(crate) fn start(&mut self) {
        match &mut self.kind {
            Kind::Real(server) => server.start_server(),
            Kind::Memory(server) => {
                let stop = CancellationToken::new();
                let stopped = stop.clone();
                let key = Arc::clone(&server.key);
                let storage = Arc::clone(&server.storage);
                let namespace = self.namespace.clone();
                let thread = std::thread::spawn(move || {
                    enter(&namespace);
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .unwrap();
                    runtime.block_on(async {
                        let listener = TcpListener::bind(("127.0.0.1", PORT)).await.unwrap();
                        tokio::select! {
                            () = serve(listener, key, storage) => {}
                            () = stopped.cancelled() => {}
                        }
                    });
                });
                server.running = Some((stop, thread));
            }
        }
        self.await_ready();
    }

    pub(crate) fn kill(&mut self) {
        match &mut self.kind {
            Kind::Real(server) => server.kill_server(),
            Kind::Memory(server) => {
                if let Some((stop, thread)) = server.running.take() {
                    stop.cancel();
                    thread.join().unwrap();
                }
            }
        }
    }

    fn await_ready(&self) {
        let until = Instant::now() + Duration::from_secs(180);
        while self
            .try_request("GET", "/api/v1/namespaces", &Value::Null)
            .0
            != 200
        {
            assert!(Instant::now() < until, "the API server does not start");
            std::thread::sleep(POLL);
        }
    }

    /// A request that succeeds, as the administrator.
    pub(crate) fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.try_request(method, path, body);
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status} {answer}"
        );
        answer
    }

    pub(crate) fn try_request(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut curl = Command::new("ip")
            .args([
                "netns",
                "exec",
                &self.namespace,
                "curl",
                "-sk",
                "-X",
                method,
            ])
            .args(["-H", &format!("Authorization: Bearer {TOKEN}")])
            .args([
                "-H",
                &format!("Content-Type: {kind}"),
                "-w",
                "\n%{http_code}",
            ])
            .args(["--data-binary", "@-"])
            .arg(format!("https://127.0.0.1:{PORT}{path}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let bytes = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        curl.stdin
            .take()
            .unwrap()
            .write_all(bytes.as_bytes())
            .unwrap();
        let output = String::from_utf8(curl.wait_with_output().unwrap().stdout).unwrap();
        let (body, status) = output.rsplit_once('\n').unwrap_or(("", "0"));
        let body = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
        (status.trim().parse().unwrap_or(0), body)
    }

    /// Writes a kubeconfig of the administrator.
    pub(crate) fn write_kubeconfig(&self, path: &Path) {
        let pem = match &self.kind {
            Kind::Memory(server) => server.key.pem.clone(),
            Kind::Real(server) => server.authority().unwrap(),
        };
        fs::write(path, kubeconfig(&pem, PORT, &format!("token: {TOKEN}"))).unwrap();
    }
}

/// A kubeconfig for a server on loopback, with the fields of its user.
pub(crate) fn kubeconfig(pem: &str, port: u16, user: &str) -> String {
    let ca = STANDARD.encode(pem);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:{port}', \
         certificate-authority-data: {ca}}}}}]\n\
         users: [{{name: a, user: {{{user}}}}}]\n"
    )
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Moves the current thread into a network namespace.
fn enter(namespace: &str) {
    let file = fs::File::open(format!("/run/netns/{namespace}")).unwrap();
    nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
}
