//! Gathers the facts of a report. Each request has a timeout, and a failure is a fact as well.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use control_client::{Client, ClientSettings, ServerContexts};
use proto_public::admin::v2::MachineServiceIssuesRequest;
use proto_public::metalmesh::admin::v1::{
    AuditTrailServiceExportsRequest, ClusterServiceStatusRequest, ClusterServiceStatusResponse,
    DoctorServiceGetRequest, FirewallStatus, IdentityServiceListRequest,
    OperatorRulesServiceListFirewallsRequest, Rollout, RolloutKind, RolloutServiceGetRequest,
    SettingsServiceGetRequest,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::audit::AuditFacts;
use super::facts::{DoctorFacts, FactResult};
use super::probed::{PrivateFile, ProbedAddress, ProbedNode};
use super::{DoctorArgs, probe};
use crate::app::App;
use crate::global_flags::GlobalFlags;

/// Longest wait for one request; then the fact is unknown.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Default data directory of a control node.
const DATA_DIR: &str = "/var/lib/metalmesh/control";
/// Files in it that only their owner should be able to read.
const KEYS: [&str; 3] = ["seal.key", "data.key", "peer.key"];
/// Most mesh addresses that are probed; the others are left out.
const ADDRESSES_MAX: usize = 64;

/// Gathers all facts.
pub(super) async fn collect(app: &App, global: &GlobalFlags, doctor: &DoctorArgs) -> DoctorFacts {
    let mut urls = vec![app.settings.api_url.clone()];
    for url in &doctor.nodes {
        if !urls.contains(url) {
            urls.push(url.clone());
        }
    }
    let mut asked = JoinSet::new();
    for (place, url) in urls.into_iter().enumerate() {
        let settings = ClientSettings {
            api_url: url,
            ..app.settings.clone()
        };
        asked.spawn(async move { (place, node(settings).await) });
    }
    let mut nodes = asked.join_all().await;
    nodes.sort_by_key(|(place, _)| *place);
    let nodes: Vec<ProbedNode> = nodes.into_iter().map(|(_, node)| node).collect();
    // The leader alone knows the sessions of agents; without it any node that answers is
    // better than none.
    let best = nodes
        .iter()
        .find(|node| node.said.as_ref().is_ok_and(|said| said.serves_sessions))
        .or_else(|| nodes.iter().find(|node| node.said.is_ok()));
    let url = best.map_or(&app.settings.api_url, |node| &node.url);
    let settings = ClientSettings {
        api_url: url.clone(),
        ..app.settings.clone()
    };
    let client = Client::new(&settings).map_err(|error| error.to_string());
    let audit = match &client {
        Err(error) => Err(error.clone()),
        Ok(client) => ask_audit(client).await,
    };
    let firewalls = match &client {
        Err(error) => Err(error.clone()),
        Ok(client) => ask_firewalls(client).await,
    };
    let rollouts = match &client {
        Err(error) => Err(error.clone()),
        Ok(client) => ask_rollouts(client).await,
    };
    let (cluster, identities, issues) = match &client {
        Err(error) => (Err(error.clone()), Err(error.clone()), Err(error.clone())),
        Ok(client) => ask_cluster(client).await,
    };
    DoctorFacts {
        now_s: now_ms() / 1000,
        context: context(global),
        keys: keys(doctor.data_dir.as_deref()),
        nodes,
        mesh: mesh(cluster.as_ref().ok()).await,
        cluster,
        identities: identities.map(|answer| answer.identities),
        issues: issues.map(|answer| answer.issues),
        firewalls,
        rollouts,
        audit,
    }
}

/// Reads the progress of the exports and the limit of records that wait for them.
async fn ask_audit(client: &Client) -> FactResult<AuditFacts> {
    let (mut trail, mut settings) = (client.audit_trail(), client.settings());
    let (exports, settings) = tokio::join!(
        answer(trail.exports(AuditTrailServiceExportsRequest {})),
        answer(settings.get(SettingsServiceGetRequest {})),
    );
    let audit = settings?.settings.and_then(|settings| settings.audit);
    let unread_max = audit.and_then(|audit| audit.unread_max).unwrap_or(0);
    Ok(AuditFacts {
        exports: exports?.exports,
        unread_max: u64::from(unread_max),
    })
}

/// Reads the firewalls of all projects.
async fn ask_firewalls(client: &Client) -> FactResult<Vec<FirewallStatus>> {
    let mut rules = client.operator_rules();
    let asked = rules.list_firewalls(OperatorRulesServiceListFirewallsRequest {});
    Ok(answer(asked).await?.firewalls)
}

/// Reads the rollouts to all kinds of agents.
async fn ask_rollouts(client: &Client) -> FactResult<Vec<Rollout>> {
    let mut found = Vec::new();
    for kind in [
        RolloutKind::Firewall,
        RolloutKind::Core,
        RolloutKind::Bmc,
        RolloutKind::Pixie,
    ] {
        let mut rollouts = client.rollouts();
        let asked = rollouts.get(RolloutServiceGetRequest { kind: kind.into() });
        found.extend(answer(asked).await?.rollout);
    }
    Ok(found)
}

type ClusterAnswers<T, U, V> = (FactResult<T>, FactResult<U>, FactResult<V>);

async fn ask_cluster(
    client: &Client,
) -> ClusterAnswers<
    ClusterServiceStatusResponse,
    proto_public::metalmesh::admin::v1::IdentityServiceListResponse,
    proto_public::admin::v2::MachineServiceIssuesResponse,
> {
    let (mut clusters, mut identities, mut machines) = (
        client.clusters(),
        client.identities(),
        client.admin_machines(),
    );
    let all = IdentityServiceListRequest {
        all: true,
        ..Default::default()
    };
    let issues = MachineServiceIssuesRequest { query: None };
    tokio::join!(
        answer(clusters.status(ClusterServiceStatusRequest { all: false })),
        answer(identities.list(all)),
        answer(machines.issues(issues)),
    )
}

/// The answer of a call, or the reason why there is none.
async fn answer<T>(
    call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> FactResult<T> {
    match timeout(REQUEST_TIMEOUT, call).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(status.message().to_owned()),
        Err(_) => Err(format!("no answer in {} s", REQUEST_TIMEOUT.as_secs())),
    }
}

/// Probes one node: its TCP port, its report and its clock.
async fn node(settings: ClientSettings) -> ProbedNode {
    let url = settings.api_url.clone();
    let tcp_ms = probe::tcp(&url).await;
    let mut node = ProbedNode {
        url,
        said: Err("it cannot be reached".to_owned()),
        skew_ms: None,
        tcp_ms,
    };
    if node.tcp_ms.is_err() {
        return node;
    }
    let client = match Client::new(&settings) {
        Ok(client) => client,
        Err(error) => {
            node.said = Err(error.to_string());
            return node;
        }
    };
    // The first call also opens the connection. Only the second one takes a plain round trip, half of
    // which bounds the error of the clock's offset.
    for _ in 0..2 {
        let (sent_ms, began) = (now_ms(), Instant::now());
        node.said = answer(client.doctor().get(DoctorServiceGetRequest {})).await;
        let Ok(said) = &node.said else { return node };
        let took_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        node.skew_ms = said.now.as_ref().map(|now| {
            let theirs = now.seconds * 1000 + i64::from(now.nanos) / 1_000_000;
            let half = took_ms / 2;
            (theirs - sent_ms - half, half.unsigned_abs() + 1)
        });
    }
    node
}

async fn mesh(cluster: Option<&ClusterServiceStatusResponse>) -> Vec<ProbedAddress> {
    let nodes = cluster.into_iter().flat_map(|status| &status.nodes);
    let addresses = nodes.flat_map(|node| {
        let addresses = node.mesh_addresses.iter();
        addresses.map(|address| (node.id, address.clone()))
    });
    let mut asked = JoinSet::new();
    for (place, (node, address)) in addresses.take(ADDRESSES_MAX).enumerate() {
        asked.spawn(async move {
            let quic_ms = probe::quic(&address).await;
            (
                place,
                ProbedAddress {
                    node,
                    address,
                    quic_ms,
                },
            )
        });
    }
    let mut all = asked.join_all().await;
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, mesh)| mesh).collect()
}

fn file(path: &Path) -> Option<PrivateFile> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    Some(PrivateFile {
        path: path.display().to_string(),
        mode,
    })
}

fn context(global: &GlobalFlags) -> Option<PrivateFile> {
    file(&ServerContexts::path(global.config.as_deref()).ok()?)
}

/// The keys of a control node on this host that this user can see.
fn keys(data_dir: Option<&Path>) -> Vec<PrivateFile> {
    let dir = data_dir.unwrap_or_else(|| Path::new(DATA_DIR));
    let mut found: Vec<PrivateFile> = KEYS
        .iter()
        .filter_map(|name| file(&dir.join(name)))
        .collect();
    // A directory without keys does not belong to a control node.
    if !found.is_empty() {
        // To pass through it shows nothing of it: agents on the same host have theirs below it.
        found.extend(file(dir).map(|dir| PrivateFile {
            mode: dir.mode & !0o011,
            ..dir
        }));
    }
    found
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
