//! A tenant's calls, measured.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::api::http::{Call, Client};
use crate::cluster::{POLL, free_ports};
use crate::process::Process;
use crate::sample::Latencies;

const LIST: &str = "/metalstack.api.v2.MachineService/List";
const NEW_TENANT: &str = "/metalstack.admin.v2.TenantService/Create";
const NEW_PROJECT: &str = "/metalstack.api.v2.ProjectService/Create";
const NEW_TOKEN: &str = "/metalstack.admin.v2.TokenService/Create";
/// Clients of the tenant that call at the same time.
const CLIENTS: usize = 4;
/// Calls of a client on one connection; the next one takes a new connection, as programs do that
/// run for a moment.
const CALLS_PER_CONNECTION: usize = 10;
/// Pause between two calls of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// A call that takes longer has failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the start may take before the bench gives up.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server, and a tenant with a project.
pub(super) struct Tenant {
    _process: Process,
    address: SocketAddr,
    list: Call,
}

/// One part of a row.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) p99_ms: f64,
    pub(super) calls: usize,
    pub(super) failed: usize,
}

impl Tenant {
    pub(super) async fn start(program: &Path, dir: &Path) -> Result<Self> {
        let [api, mesh] = free_ports(2)?[..] else {
            anyhow::bail!("no ports");
        };
        let address = SocketAddr::from(([127, 0, 0, 1], api));
        let token_file = dir.join("admin-token");
        let arguments = [
            program.display().to_string(),
            format!("--data-dir={}", dir.join("data").display()),
            format!("--api-listen={address}"),
            format!("--mesh-listen=127.0.0.1:{mesh}"),
            format!("--token-file={}", token_file.display()),
        ];
        let mut process = Process::start(&arguments, &dir.join("log"))?;
        let until = Instant::now() + START_TIMEOUT;
        let mut client = Client::new(address);
        let (login, name) = ("acme", "acme-project");
        let admin = loop {
            process.check()?;
            ensure!(Instant::now() < until, "metalmeshd does not serve in time");
            if let Ok(token) = std::fs::read_to_string(&token_file)
                && let new = json!({ "name": login })
                && client.call(&call(NEW_TENANT, &token, &new)?).await.is_ok()
            {
                break token;
            }
            tokio::time::sleep(POLL).await;
        };
        let new = json!({ "login": login, "name": name });
        let made = client.json(&call(NEW_PROJECT, &admin, &new)?).await?;
        let project = made["project"]["uuid"].as_str().context("no project")?;
        let rights = json!({ "projectRoles": { project: "PROJECT_ROLE_OWNER" },
                             "expires": "3600s" });
        let new = json!({ "user": login, "tokenCreateRequest": rights });
        let made = client.json(&call(NEW_TOKEN, &admin, &new)?).await?;
        let token = made["secret"].as_str().context("no token")?;
        let list = call(LIST, token, &json!({ "project": project }))?;
        client.call(&list).await.context("the tenant's call")?;
        Ok(Self {
            _process: process,
            address,
            list,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls for so long, and says how long the calls took.
    pub(super) async fn measure(&self, time: Duration) -> Result<Measured> {
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(work(self.address, self.list.clone(), Instant::now() + time));
        }
        let (mut latencies, mut failed) = (Latencies::default(), 0);
        while let Some(done) = clients.join_next().await {
            let (its, its_failed) = done?;
            latencies.extend(its);
            failed += its_failed;
        }
        Ok(Measured {
            p99_ms: latencies.quantile_us(0.99) / 1e3,
            calls: latencies.len(),
            failed,
        })
    }
}

/// Time to connect is a part of a call's time.
async fn work(address: SocketAddr, list: Call, until: Instant) -> (Latencies, usize) {
    let (mut latencies, mut failed) = (Latencies::default(), 0);
    while Instant::now() < until {
        let mut client = Client::new(address);
        for _ in 0..CALLS_PER_CONNECTION {
            let began = Instant::now();
            let called = tokio::time::timeout(CALL_TIMEOUT, client.call(&list)).await;
            if !matches!(called, Ok(Ok(_))) {
                failed += 1;
            }
            latencies.add(began.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
    }
    (latencies, failed)
}

fn call(path: &str, token: &str, body: &Value) -> Result<Call> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.trim()))?;
    bearer.set_sensitive(true);
    Ok(Call {
        method: Method::POST,
        path: path.to_owned(),
        headers: vec![(AUTHORIZATION, bearer)],
        body: body.to_string().into(),
    })
}
