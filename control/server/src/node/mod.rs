//! The life of a node: opening the store, wiring the parts, and stopping them in order.

mod open;
mod parts;
mod peering;
mod stop;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use control_gateway::{Gateway, GatewayConfig};
use control_pki::Pki;
use control_presence::Presence;
use control_store::{DirectoryOwner, Store};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::bootstrap::Handover;
use crate::config::Config;
use crate::guarded_dir::{self, GuardedDir};
use crate::join::TicketPolicy;
use crate::{metrics, peers, tls};
use open::{OpenedNode, close, open};
use parts::NodeParts;
use stop::NodeStop;

pub(crate) use self::open::make_data_dir;

/// Longest wait of a join for the first call of another node, which sends the state.
const REACH_MAX: Duration = Duration::from_secs(120);

/// Checks what `init` needs beside the host. Returns the destination of the admin token.
pub(crate) fn check_init(config: &Config, run: &RunArgs) -> Result<Handover> {
    ensure!(
        config.data_dir.is_some(),
        "init makes a lasting node; name --data-dir"
    );
    ensure!(
        config.peers.as_ref().is_none_or(|peers| !peers.join),
        "peers.join: is true, so this node joins a cluster; init is for the node that forms one"
    );
    let handover = Handover::new(run, config.api_listen, config.tls.is_some())?;
    ensure!(
        handover.has_destination(),
        "name where the admin token goes: --token-file FILE"
    );
    Ok(handover)
}

/// A node that was set up now.
#[derive(Debug)]
pub(crate) struct FormedNode {
    pub(crate) owner: DirectoryOwner,
    /// Lines about the admin token, for people.
    pub(crate) told: Vec<String>,
}

/// `metalmeshd init`: creates the data directory and its first admin token. `None` means that the
/// directory was set up before, and nothing changed.
pub(crate) async fn init(
    config: &Config,
    handover: &Handover,
    stop: &CancellationToken,
) -> Result<Option<FormedNode>> {
    let Some(opened) = open(config, TicketPolicy::Wait, stop).await? else {
        bail!("stopped before the node was ready");
    };
    if !opened.is_fresh {
        close(opened).await;
        return Ok(None);
    }
    let outcome = set_up(&opened, config, handover, "made by metalmeshd init").await;
    let owner = owner(&opened);
    close(opened).await;
    outcome.map(|told| Some(FormedNode { owner, told }))
}

/// `metalmeshd join`: joins by the ticket that is in its place, and waits until another node has sent
/// the state.
///
/// # Errors
/// The cluster refused the ticket, or no other node called in time.
pub(crate) async fn join(config: &Config, stop: &CancellationToken) -> Result<DirectoryOwner> {
    let late = CancellationToken::new();
    let ends = stop.child_token();
    let mut timer = JoinSet::new();
    let (limit, over) = (ends.clone(), late.clone());
    timer.spawn(async move {
        tokio::time::sleep(REACH_MAX).await;
        over.cancel();
        limit.cancel();
    });
    let opened = open(config, TicketPolicy::Once, &ends).await?;
    drop(timer);
    let Some(opened) = opened else {
        ensure!(!late.is_cancelled(), "{}", unreached(config));
        bail!("stopped before the node had joined; run the command again");
    };
    let owner = owner(&opened);
    close(opened).await;
    Ok(owner)
}

/// The reason why a node that the cluster took in got no state.
fn unreached(config: &Config) -> String {
    let peers = config.peers.as_ref();
    let address = peers.map_or_else(String::new, |peers| peers.address.clone());
    format!(
        "no control node sent the state within {} s: let UDP through to {address}, in both directions, \
         and start metalmeshd; if it has joined it goes on by itself, else run the command again",
        REACH_MAX.as_secs()
    )
}

fn owner(opened: &OpenedNode) -> DirectoryOwner {
    DirectoryOwner {
        cluster_id: opened.store.cluster_id(),
        cluster: opened.store.cluster().to_owned(),
        node: opened.store.node_id(),
    }
}

/// `metalmeshd token`: creates a new admin token when the last one was lost.
pub(crate) async fn token(config: Config, run: &RunArgs, stop: CancellationToken) -> Result<()> {
    ensure!(config.data_dir.is_some(), "name the node's --data-dir");
    let handover = Handover::new(run, config.api_listen, config.tls.is_some())?;
    ensure!(
        handover.has_destination(),
        "name where the admin token goes: --token-file FILE"
    );
    let dir = config.data_dir.as_deref().context("data_dir: is missing")?;
    // Files that root leaves in it would keep the service from starting.
    let guarded = GuardedDir::take(dir, guarded_dir::owner_of(dir)?)?
        .with_context(|| format!("data_dir: {} is in use by another process", dir.display()))?;
    let outcome = another_token(&config, &handover, &stop).await;
    let given = guarded.give();
    tell(&outcome?);
    given
}

async fn another_token(
    config: &Config,
    handover: &Handover,
    stop: &CancellationToken,
) -> Result<Vec<String>> {
    let Some(opened) = open(config, TicketPolicy::Wait, stop).await? else {
        bail!("stopped before the node was ready");
    };
    let outcome = give(&opened, handover, "made by metalmeshd token").await;
    close(opened).await;
    outcome
}

/// Hands over an admin token.
async fn give(opened: &OpenedNode, handover: &Handover, why: &str) -> Result<Vec<String>> {
    // The cluster's feature level is the lowest one that its nodes announced, and 1 before that. The
    // record of the token needs a higher level, so this node announces its own first.
    peers::announce_level(&opened.store).await?;
    handover.give(&opened.store, &opened.issuer, why).await
}

fn tell(lines: &[String]) {
    for line in lines {
        println!("{line}");
    }
}

/// Hands over the first admin token and only then marks the cluster as set up. A crash in between
/// leads to a second token at the next start, never to a cluster without one.
async fn set_up(
    opened: &OpenedNode,
    config: &Config,
    handover: &Handover,
    why: &str,
) -> Result<Vec<String>> {
    let mut told = Vec::new();
    if handover.has_destination() {
        told = give(opened, handover, why).await?;
    } else {
        tracing::warn!("no admin token was made; get one with: metalmeshd token");
    }
    control_gate::bootstrap::tenants(&opened.store, &config.provider).await?;
    Ok(told)
}

/// Runs the node until stopped.
pub(crate) async fn run(config: Config, run: &RunArgs, asked: CancellationToken) -> Result<()> {
    if let Some(dir) = &config.data_dir {
        guarded_dir::check_runner(dir)?;
    }
    let stop = NodeStop::spawn(asked);
    let listener = TcpListener::bind(config.api_listen)
        .await
        .with_context(|| format!("api.listen: cannot listen on {}", config.api_listen))?;
    let api = listener.local_addr()?;
    let metrics = metrics::bind(config.metrics_listen).await?;
    let tls = config.tls.as_ref().map(tls::server_config).transpose()?;
    let ironic = config.ironic.bind(tls.is_some()).await?;
    let Some(opened) = open(&config, TicketPolicy::Wait, &stop.parts).await? else {
        tracing::info!("stopped before the node was ready");
        return Ok(());
    };
    stop.opened(&opened.store);
    let handover = Handover::new(run, api, tls.is_some())?;
    if opened.is_fresh {
        tell(&set_up(&opened, &config, &handover, "made at the first start").await?);
    } else if config.dev {
        handover.follow()?;
    }
    let OpenedNode {
        store,
        dir,
        issuer,
        pki,
        link,
        peering,
        backups,
        seal,
        temporary: _temporary,
        ..
    } = opened;
    let presence = Presence::new(store.clone());
    let gateway = gateway(&config, &store, &pki, presence.clone())?;
    let mesh = gateway.local_addr()?;
    let mesh_addresses = match config.mesh_addresses.as_slice() {
        [] => vec![mesh.to_string()],
        addresses => addresses.to_vec(),
    };
    let peer_address = config.peers.as_ref().map(|p| p.address.clone());
    let peer_address = peer_address.filter(|_| link.is_some()).unwrap_or_default();
    peers::announce(&store, &peer_address, mesh_addresses.clone()).await?;
    let parts = NodeParts {
        store: store.clone(),
        dir,
        issuer,
        pki,
        presence,
        backups,
        seal,
        metrics,
        ironic,
        mesh,
        mesh_addresses,
        peer_address,
        config: &config,
    };
    let ending = stop.parts.clone();
    let served = parts.serve(listener, tls, gateway, peering, ending).await;
    store.shutdown().await;
    tracing::info!("stopped");
    served
}

fn gateway(config: &Config, store: &Store, pki: &Pki, presence: Presence) -> Result<Gateway> {
    let named = || format!("mesh.listen: cannot listen on {}", config.mesh_listen);
    let bind = free_port(config.mesh_listen).with_context(named)?;
    let control = if config.mesh_addresses.is_empty() {
        vec![bind.to_string()]
    } else {
        config.mesh_addresses.clone()
    };
    Gateway::bind(GatewayConfig {
        bind,
        store: store.clone(),
        pki: pki.clone(),
        presence,
        control,
    })
    .with_context(named)
}

/// Replaces port 0 by a free port. The port must be known before the gateway binds, because tickets
/// name it.
fn free_port(address: SocketAddr) -> std::io::Result<SocketAddr> {
    if address.port() != 0 {
        return Ok(address);
    }
    std::net::UdpSocket::bind(address)?.local_addr()
}
