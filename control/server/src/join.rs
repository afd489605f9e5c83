//! A node that waits for a ticket, and its first words with the cluster.
//!
//! The key is made here and stays here; the ticket is bound to it, so that a ticket that gets
//! lost is of no use to anybody else. The cluster's data key comes wrapped to a key that was made
//! for this join only, and is kept sealed by this node's own key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use control_pki::{PeerCredential, SealingKey, Unwrapper, WrappedKey};
use control_state::FEATURE_LEVEL;
use proto_identity::ticket::JoinTicket;
use proto_identity::{CertificateDer, Credential, Key, Roots, tls};
use proto_link::{ALPN, MeshClient, MeshClientConfig};
use proto_mesh::{JoinClusterRequest, JoinClusterResponse, NodeServiceClient};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Peers};
use crate::files;

/// The key by which this node joins, in the data directory.
const KEY: &str = "peer.key";
/// Where the ticket is looked for when nobody says.
const TICKET: &str = "node.ticket";
/// How often it is looked for a ticket.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Pause after the cluster could not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// What a node needs to become a part of the cluster.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) node: u64,
    pub(crate) cluster_id: uuid::Uuid,
    pub(crate) cluster: String,
    pub(crate) credential: PeerCredential,
    pub(crate) data_key: SealingKey,
}

/// Waits for a ticket and joins by it. `None` when stopped before.
pub(crate) async fn wait(
    config: &Config,
    peers: &Peers,
    dir: &Path,
    stop: &CancellationToken,
) -> Result<Option<Joined>> {
    ensure!(
        config.node_id.is_none(),
        "node_id: a node that joins gets its number from the cluster; leave node_id out"
    );
    let key = key(dir)?;
    let ticket = peers.ticket.clone().unwrap_or_else(|| dir.join(TICKET));
    let (shown, path) = (key.fingerprint(), ticket.display());
    println!("waiting key={shown} ticket={path}");
    tracing::info!(
        key = %shown,
        ticket = %path,
        "waiting to join; make a ticket with: metalmesh cluster join --key-sha256 {shown}"
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
                // It is used up.
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

/// The next ticket that is not the refused one.
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
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

/// Asks until the cluster lets this node in or refuses it.
async fn attempt(
    ticket: &JoinTicket,
    key: &Key,
    peers: &Peers,
) -> Result<(JoinClusterResponse, Unwrapper)> {
    let roots = Roots::Sha256(ticket.roots.clone());
    let tls = tls::client_config(roots, None, ALPN)?;
    let mesh = MeshClient::new(MeshClientConfig::new(ticket.control.clone(), tls))?;
    let client = NodeServiceClient::from(mesh.clone());
    loop {
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
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

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

/// The key of this node; made at the first start.
fn key(dir: &Path) -> Result<Key> {
    let path: PathBuf = dir.join(KEY);
    if !path.exists() {
        files::write_private(&path, &Key::generate()?.to_pem())?;
    }
    let named = || format!("cannot use {}", path.display());
    let pem = std::fs::read_to_string(&path).with_context(named)?;
    Key::from_pem(&pem).with_context(named)
}
