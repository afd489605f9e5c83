//! The shell of the doctor: asks everybody, in bounded time, and takes no for an answer.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use control_client::{Client, Contexts, Settings};
use proto_public::admin::v2::MachineServiceIssuesRequest;
use proto_public::metalmesh::admin::v1::{
    AuditTrailServiceExportsRequest, ClusterServiceStatusRequest, ClusterServiceStatusResponse,
    DoctorServiceGetRequest, IdentityServiceListRequest, SettingsServiceGetRequest,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::audit::AuditFacts;
use super::facts::{Facts, File, Known, Mesh, Node};
use super::{Doctor, probe};
use crate::app::App;
use crate::args::Global;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where a control node keeps its data when nobody says.
const DATA_DIR: &str = "/var/lib/metalmesh";
/// Files in it that are their owner's alone.
const KEYS: [&str; 3] = ["seal.key", "data.key", "peer.key"];
/// Addresses that are tried at once.
const ADDRESSES_MAX: usize = 64;

/// Asks everybody.
pub(super) async fn collect(app: &App, global: &Global, doctor: &Doctor) -> Facts {
    let mut urls = vec![app.settings.api_url.clone()];
    for url in &doctor.nodes {
        if !urls.contains(url) {
            urls.push(url.clone());
        }
    }
    let mut asked = JoinSet::new();
    for (place, url) in urls.into_iter().enumerate() {
        let settings = Settings {
            api_url: url,
            ..app.settings.clone()
        };
        asked.spawn(async move { (place, node(settings).await) });
    }
    let mut nodes = asked.join_all().await;
    nodes.sort_by_key(|(place, _)| *place);
    let nodes: Vec<Node> = nodes.into_iter().map(|(_, node)| node).collect();
    // Whoever leads knows most; without one, whoever answers.
    let best = nodes
        .iter()
        .find(|node| node.said.as_ref().is_ok_and(|it| it.serves_sessions))
        .or_else(|| nodes.iter().find(|node| node.said.is_ok()));
    let url = best.map_or(&app.settings.api_url, |node| &node.url);
    let settings = Settings {
        api_url: url.clone(),
        ..app.settings.clone()
    };
    let client = Client::new(&settings).map_err(|error| error.to_string());
    let audit = match &client {
        Err(error) => Err(error.clone()),
        Ok(client) => ask_audit(client).await,
    };
    let (cluster, identities, issues) = match &client {
        Err(error) => (Err(error.clone()), Err(error.clone()), Err(error.clone())),
        Ok(client) => ask_cluster(client).await,
    };
    Facts {
        now_s: now_ms() / 1000,
        context: context(global),
        keys: keys(doctor.data_dir.as_deref()),
        nodes,
        mesh: mesh(cluster.as_ref().ok()).await,
        cluster,
        identities: identities.map(|it| it.identities),
        issues: issues.map(|it| it.issues),
        audit,
    }
}

/// How far the audit trail was sent, and how much is kept for places that did not read it.
async fn ask_audit(client: &Client) -> Known<AuditFacts> {
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

type Answers<T, U, V> = (Known<T>, Known<U>, Known<V>);

async fn ask_cluster(
    client: &Client,
) -> Answers<
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

/// An answer in time, or why there is none.
async fn answer<T>(
    call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Known<T> {
    match timeout(PATIENCE, call).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(status.message().to_owned()),
        Err(_) => Err(format!("no answer in {} s", PATIENCE.as_secs())),
    }
}

/// One node: whether it can be reached, what it says, and its clock.
async fn node(settings: Settings) -> Node {
    let url = settings.api_url.clone();
    let tcp_ms = probe::tcp(&url).await;
    let mut node = Node {
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
    // The first call opens the connection; the second one takes as long as the way is.
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

async fn mesh(cluster: Option<&ClusterServiceStatusResponse>) -> Vec<Mesh> {
    let nodes = cluster.into_iter().flat_map(|it| &it.nodes);
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
                Mesh {
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

fn file(path: &Path) -> Option<File> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    Some(File {
        path: path.display().to_string(),
        mode,
    })
}

fn context(global: &Global) -> Option<File> {
    file(&Contexts::path(global.config.as_deref()).ok()?)
}

/// Keys of a control node on this host, as far as they can be seen from here.
fn keys(data_dir: Option<&Path>) -> Vec<File> {
    let dir = data_dir.unwrap_or_else(|| Path::new(DATA_DIR));
    let mut found: Vec<File> = KEYS.iter().filter_map(|it| file(&dir.join(it))).collect();
    // A folder without keys is not a control node's.
    if !found.is_empty() {
        found.extend(file(dir));
    }
    found
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
