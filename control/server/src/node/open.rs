//! Opening a node: its data directory, keys, peers and certificate authority.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use control_backup::Backups;
use control_gate::token;
use control_gate::token::Issuer;
use control_peers::PeerLink;
use control_pki::{Pki, SealingKey, peer_credential_at_rest};
use control_store::{StartMode, Store, StoreConfig, claimed};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, PeerSettings};
use crate::data_dir::{DATA_KEY, SEALING_KEY};
use crate::join::TicketPolicy;
use crate::{files, join, peers};

use super::peering::Peering;

/// Default name of a new cluster.
const CLUSTER: &str = "metalmesh";

/// A node whose data directory is open and whose cluster has a quorum.
pub(super) struct OpenedNode {
    pub(super) store: Store,
    /// The data directory.
    pub(super) dir: PathBuf,
    pub(super) issuer: Issuer,
    pub(super) pki: Pki,
    pub(super) backups: Backups,
    pub(super) seal: SealingKey,
    /// `true` if the cluster is not set up yet.
    pub(super) is_fresh: bool,
    /// The link to the peers. `None` means a cluster of one node.
    pub(super) link: Option<PeerLink>,
    /// Tasks of the link.
    pub(super) peering: Peering,
    /// The temporary data directory, removed when dropped. `None` means a lasting one.
    pub(super) temporary: Option<TempDir>,
}

/// Opens the node and waits for a quorum. `None` means that it was stopped before.
pub(super) async fn open(
    config: &Config,
    policy: TicketPolicy,
    stop: &CancellationToken,
) -> Result<Option<OpenedNode>> {
    let temporary = match &config.data_dir {
        Some(_) => None,
        None => Some(
            tempfile::Builder::new()
                .prefix("metalmeshd-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir()?,
        ),
    };
    let dir: PathBuf = match (&config.data_dir, &temporary) {
        (Some(dir), _) => dir.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => bail!("data_dir: is missing"),
    };
    make_data_dir(&dir)?;
    let link = config.peers.as_ref().map(bind_peers).transpose()?;
    let Some((store, seal)) = open_store(config, &dir, link.as_ref(), policy, stop).await? else {
        return Ok(None);
    };
    let mut peering = Peering::default();
    if let Some(link) = &link {
        if let Some(credential) = peer_credential_at_rest(&store, &seal, &config.trust_domain)? {
            link.set_credential(credential)?;
        }
        peering.start(link, &store, stop);
    }
    let works = peers::wait_for_majority(&store, stop).await;
    if !matches!(works, Ok(true)) {
        peering.end().await;
        store.shutdown().await;
        return works.map(|_| None);
    }
    let pki = Pki::open(store.clone(), &seal, &config.trust_domain)
        .await
        .context("cannot open the certificate authority")?;
    if let Some(link) = &link {
        let (link, pki) = (link.clone(), pki.clone());
        let (tasks, ending) = (&mut peering.tasks, peering.stop.clone());
        peers::spawn_renewal(tasks, link, pki, store.node_id(), ending);
    }
    let issuer = token::issuer(&store, &seal, &config.issuer).await?;
    let backups = Backups::new(store.clone(), seal.secret());
    let is_fresh = control_gate::bootstrap::is_fresh(&store, &config.provider).await?;
    Ok(Some(OpenedNode {
        store,
        dir,
        issuer,
        pki,
        backups,
        seal,
        is_fresh,
        link,
        peering,
        temporary,
    }))
}

/// Creates the data directory, which nobody else may enter, unless it exists. Directories above it are
/// open to others: agents on the same host have theirs there.
pub(crate) fn make_data_dir(dir: &Path) -> Result<()> {
    let named = || format!("data_dir: cannot make {}", dir.display());
    if let Some(parent) = dir.parent() {
        files::make_open_dirs(parent).with_context(named)?;
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(named)
}

fn bind_peers(peers: &PeerSettings) -> Result<PeerLink> {
    let listen = peers.listen;
    PeerLink::bind(listen).with_context(|| format!("peers.listen: cannot listen on {listen}"))
}

/// Opens the store, after joining a cluster if configured, and the key that seals its secrets. `None`
/// means that the node was stopped before.
async fn open_store(
    config: &Config,
    dir: &Path,
    link: Option<&PeerLink>,
    policy: TicketPolicy,
    stop: &CancellationToken,
) -> Result<Option<(Store, SealingKey)>> {
    let claim = claimed(dir).context("cannot open the state")?;
    let node_key = sealing_key(config, dir, claim.is_none())?;
    let data_key = dir.join(DATA_KEY);
    let mut begin = StartMode::Form;
    let mut node = config.node_id.or_else(|| claim.as_ref().map(|c| c.node));
    let mut cluster = config.cluster.clone();
    let mut seal = None;
    if let (Some(peers), Some(link), None) = (&config.peers, link, &claim)
        && peers.join
    {
        let Some(joined) = join::wait(config, peers, dir, policy, stop).await? else {
            return Ok(None);
        };
        // A join that was interrupted after this step left a data key. The cluster sends the key again,
        // and `keep_data_key` does not replace an existing file.
        if data_key.exists() {
            std::fs::remove_file(&data_key)?;
        }
        node_key.keep_data_key(&data_key, &joined.data_key)?;
        link.set_credential(joined.credential)?;
        begin = StartMode::Join(joined.cluster_id);
        node = Some(joined.node);
        cluster = Some(joined.cluster);
        seal = Some(joined.data_key);
    }
    let seal = match seal {
        Some(seal) => seal,
        None => node_key.data_key(&data_key, claim.is_none())?,
    };
    let cluster = cluster.or_else(|| claim.map(|c| c.cluster));
    let cluster = cluster.unwrap_or_else(|| CLUSTER.to_owned());
    let mut store = StoreConfig::new(dir, node.unwrap_or(1), cluster);
    store.begin = begin;
    store.snapshot_every_entries = config.snapshot_every_entries;
    store.keep_entries = config.keep_entries;
    if let (Some(peers), Some(link)) = (&config.peers, link) {
        store.peer_address.clone_from(&peers.address);
        store.transport = Arc::new(link.clone());
        store.snapshot_bytes_per_second = peers.snapshot_bytes_per_second;
    }
    let store = Store::open(store).await.context("cannot open the state")?;
    Ok(Some((store, seal)))
}

/// The node's sealing key, created at the first start only.
fn sealing_key(config: &Config, dir: &Path, is_first: bool) -> Result<SealingKey> {
    let path = config
        .sealing_key
        .clone()
        .unwrap_or_else(|| dir.join(SEALING_KEY));
    SealingKey::load(&path, is_first)
        .with_context(|| format!("mesh.sealing_key: cannot use {}", path.display()))
}

/// Closes the node. The link ends before the store, so that the peers notice the end of the
/// connection at once instead of after a timeout.
pub(super) async fn close(opened: OpenedNode) {
    opened.peering.end().await;
    opened.store.shutdown().await;
}
