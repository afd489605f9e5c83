//! Joining a cluster by a ticket.
//!
//! The node's private key is created here and never leaves the node. The ticket is bound to it, so a
//! lost ticket is useless to others. The cluster's data key arrives wrapped for a key pair of this
//! join only, and is stored sealed by the node's own key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base_runtime::Backoff;
use control_pki::{PeerCredential, SealingKey, Unwrapper, WrappedKey};
use control_state::FEATURE_LEVEL;
use proto_identity::ticket::JoinTicket;
use proto_identity::{CertificateDer, Credential, Key, Roots, tls};
use proto_link::{ALPN, MeshClient, MeshClientConfig};
use proto_mesh::{JoinClusterRequest, JoinClusterResponse, NodeServiceClient};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, PeerSettings};
use crate::data_dir::{PEER_KEY, TICKET};
use crate::files;

/// The conduct of a node without a ticket, or whose ticket the cluster refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TicketPolicy {
    /// Waits for a ticket, and for another one after a refusal: the service.
    Wait,
    /// Ends with the refusal, or after [`ANSWER_MAX`] without an answer: a command that somebody
    /// watches.
    Once,
}

/// Longest wait of [`TicketPolicy::Once`] for the answer of the cluster.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Interval between two checks for a ticket.
const TICKET_POLL: Duration = Duration::from_millis(500);
/// Pauses after the cluster did not answer: 1 s, doubled up to 15 s, with jitter.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// The cluster's answer to a join, checked.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) node: u64,
    pub(crate) cluster_id: uuid::Uuid,
    pub(crate) cluster: String,
    pub(crate) credential: PeerCredential,
    pub(crate) data_key: SealingKey,
}

/// Waits for a ticket and joins by it. `None` means that the node was stopped before.
pub(crate) async fn wait(
    config: &Config,
    peers: &PeerSettings,
    dir: &Path,
    policy: TicketPolicy,
    stop: &CancellationToken,
) -> Result<Option<Joined>> {
    ensure!(
        config.node_id.is_none(),
        "node_id: a node that joins gets its number from the cluster; leave node_id out"
    );
    let key = key(dir)?;
    let ticket = ticket_path(peers, dir);
    if policy == TicketPolicy::Once {
        return once(config, peers, &key, &ticket, stop).await;
    }
    let (shown, path) = (key.fingerprint(), ticket.display());
    println!("waiting key={shown} ticket={path}");
    tracing::info!(
        key = %shown,
        ticket = %path,
        "waiting to join; make a ticket with: metalmesh cluster invite --key-sha256 {shown}"
    );
    let mut refused = String::new();
    loop {
        let Some((text, found)) = next_ticket(&ticket, &refused, stop).await else {
            return Ok(None);
        };
        let attempt = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            attempt = attempt(&found, &key, peers) => attempt,
        };
        match attempt {
            Ok((response, unwrapper)) => {
                let joined = accept(config, &key, response, unwrapper)?;
                // A ticket is valid once. A file that stays is harmless: the next start does not join.
                drop(std::fs::remove_file(&ticket));
                return Ok(Some(joined));
            }
            Err(error) => {
                tracing::error!(
                    error = %format!("{error:#}"),
                    "the cluster refused the ticket; put another one in its place"
                );
                refused = text;
            }
        }
    }
}

/// File of the ticket of a node with this data directory.
pub(crate) fn ticket_path(peers: &PeerSettings, dir: &Path) -> PathBuf {
    peers.ticket.clone().unwrap_or_else(|| dir.join(TICKET))
}

/// Joins by the ticket that is there. `None` means that the node was stopped before.
async fn once(
    config: &Config,
    peers: &PeerSettings,
    key: &Key,
    path: &Path,
    stop: &CancellationToken,
) -> Result<Option<Joined>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the ticket {}", path.display()))?;
    let ticket = JoinTicket::parse(&text).with_context(|| format!("in {}", path.display()))?;
    let attempt = tokio::select! {
        () = stop.cancelled() => return Ok(None),
        attempt = tokio::time::timeout(ANSWER_MAX, attempt(&ticket, key, peers)) => attempt,
    };
    // The service must not try a ticket again that was refused. After a silence it may still be good, but
    // then the command is repeated with the invitation, which has it too.
    drop(std::fs::remove_file(path));
    let (response, unwrapper) = attempt.map_err(|_| {
        anyhow::anyhow!(
            "the cluster did not answer within {} s at {}, for the reason in the warnings above: let \
             UDP through to these addresses, compare the clocks, and run the same command again \
             while the invitation is valid",
            ANSWER_MAX.as_secs(),
            ticket.control.join(", ")
        )
    })??;
    accept(config, key, response, unwrapper).map(Some)
}

/// Waits for a ticket other than the refused one. `None` means that the node was stopped before.
async fn next_ticket(
    path: &Path,
    refused: &str,
    stop: &CancellationToken,
) -> Option<(String, JoinTicket)> {
    let mut told = String::new();
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && text != refused
            && text != told
        {
            match JoinTicket::parse(&text) {
                Ok(ticket) => return Some((text, ticket)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), error = %error, "not a ticket");
                    told = text;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(TICKET_POLL) => {}
        }
    }
}

/// Repeats the request until the cluster accepts or refuses this node.
async fn attempt(
    ticket: &JoinTicket,
    key: &Key,
    peers: &PeerSettings,
) -> Result<(JoinClusterResponse, Unwrapper)> {
    let roots = Roots::Sha256(ticket.roots.clone());
    let tls = tls::client_config(roots, None, ALPN)?;
    let mesh = MeshClient::new(MeshClientConfig::new(ticket.control.clone(), tls))?;
    let client = NodeServiceClient::from(mesh.clone());
    let mut failures = 0;
    loop {
        // A new key pair for each attempt: an answer that was lost on the way is then useless.
        let unwrapper = Unwrapper::generate()?;
        let request = JoinClusterRequest {
            ticket_id: ticket.id.clone(),
            secret: ticket.secret.to_vec(),
            csr: key.request()?,
            wrap_to: unwrapper.public().to_vec(),
            peer_address: peers.address.clone(),
            level: FEATURE_LEVEL,
        };
        match client.join_cluster(request).await {
            Ok(response) => {
                mesh.close().await;
                return Ok((response, unwrapper));
            }
            Err(e) if e.is_transient() => {
                tracing::warn!(error = %e, "the cluster does not answer; trying again to join");
                tokio::time::sleep(RETRY.pause(failures)).await;
                failures = failures.saturating_add(1);
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// Checks the cluster's answer against the configuration and unwraps the data key.
fn accept(
    config: &Config,
    key: &Key,
    response: JoinClusterResponse,
    unwrapper: Unwrapper,
) -> Result<Joined> {
    ensure!(
        response.trust_domain == config.trust_domain,
        "mesh.trust_domain: is {:?} here, but the cluster's is {:?}",
        config.trust_domain,
        response.trust_domain
    );
    if let Some(cluster) = &config.cluster {
        ensure!(
            response.cluster == *cluster,
            "cluster: is {cluster:?} here, but the cluster is called {:?}",
            response.cluster
        );
    }
    let anchor = CertificateDer::from(response.anchor);
    let own = Credential {
        key: key.clone(),
        chain: response
            .chain
            .into_iter()
            .map(CertificateDer::from)
            .collect(),
        roots: vec![anchor.clone()],
    };
    own.identity()?;
    let data_key = unwrapper.unwrap(&WrappedKey {
        public: response.wrap_public,
        sealed: response.wrapped_key,
    })?;
    let cluster_id = response.cluster_id.parse();
    tracing::info!(node = response.node, cluster = %response.cluster, "joined");
    Ok(Joined {
        node: response.node,
        cluster_id: cluster_id.context("the cluster's id is malformed")?,
        cluster: response.cluster,
        credential: PeerCredential {
            own,
            anchors: vec![anchor],
        },
        data_key,
    })
}

/// The private key of this node, created at the first start.
fn key(dir: &Path) -> Result<Key> {
    let path: PathBuf = dir.join(PEER_KEY);
    if !path.exists() {
        files::write_private(&path, &Key::generate()?.to_pem())?;
    }
    let named = || format!("cannot use {}", path.display());
    let pem = std::fs::read_to_string(&path).with_context(named)?;
    Key::from_pem(&pem).with_context(named)
}
