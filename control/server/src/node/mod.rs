//! The life of a node: opening the store, wiring the parts, and stopping them in order.

mod open;
mod parts;
mod stop;

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use control_gateway::{Gateway, GatewayConfig};
use control_pki::Pki;
use control_presence::Presence;
use control_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::bootstrap::Handover;
use crate::config::Config;
use crate::{metrics, peers, tls};
use open::{OpenedNode, close, open};
use parts::NodeParts;
use stop::NodeStop;

/// `metalmeshd init`: creates the data directory and its first admin token.
pub(crate) async fn init(config: Config, run: &RunArgs, stop: CancellationToken) -> Result<()> {
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
    let Some(opened) = open(&config, &stop).await? else {
        bail!("stopped before the node was ready");
    };
    let outcome = if opened.is_fresh {
        set_up(&opened, &config, &handover, "made by metalmeshd init").await
    } else {
        Err(anyhow::anyhow!(
            "the data directory is in use already; for a new admin token: metalmeshd token"
        ))
    };
    close(opened, &stop).await;
    outcome
}

/// `metalmeshd token`: creates a new admin token when the last one was lost.
pub(crate) async fn token(config: Config, run: &RunArgs, stop: CancellationToken) -> Result<()> {
    ensure!(config.data_dir.is_some(), "name the node's --data-dir");
    let handover = Handover::new(run, config.api_listen, config.tls.is_some())?;
    ensure!(
        handover.has_destination(),
        "name where the admin token goes: --token-file FILE"
    );
    let Some(opened) = open(&config, &stop).await? else {
        bail!("stopped before the node was ready");
    };
    let outcome = give(&opened, &handover, "made by metalmeshd token").await;
    close(opened, &stop).await;
    outcome
}

/// Hands over an admin token.
async fn give(opened: &OpenedNode, handover: &Handover, why: &str) -> Result<()> {
    // The cluster's feature level is the lowest one that its nodes announced, and 1 before that. The
    // record of the token needs a higher level, so this node announces its own first.
    peers::announce_level(&opened.store).await?;
    handover.give(&opened.store, &opened.issuer, why).await
}

/// Hands over the first admin token and only then marks the cluster as set up. A crash in between
/// leads to a second token at the next start, never to a cluster without one.
async fn set_up(
    opened: &OpenedNode,
    config: &Config,
    handover: &Handover,
    why: &str,
) -> Result<()> {
    if handover.has_destination() {
        give(opened, handover, why).await?;
    } else {
        tracing::warn!("no admin token was made; get one with: metalmeshd token");
    }
    control_gate::bootstrap::tenants(&opened.store, &config.provider).await?;
    Ok(())
}

/// Runs the node until stopped.
pub(crate) async fn run(config: Config, run: &RunArgs, asked: CancellationToken) -> Result<()> {
    let stop = NodeStop::spawn(asked);
    let listener = TcpListener::bind(config.api_listen)
        .await
        .with_context(|| format!("api.listen: cannot listen on {}", config.api_listen))?;
    let api = listener.local_addr()?;
    let metrics = metrics::bind(config.metrics_listen).await?;
    let tls = config.tls.as_ref().map(tls::server_config).transpose()?;
    let ironic = config.ironic.bind(tls.is_some()).await?;
    let Some(opened) = open(&config, &stop.parts).await? else {
        tracing::info!("stopped before the node was ready");
        return Ok(());
    };
    stop.opened(&opened.store);
    let handover = Handover::new(run, api, tls.is_some())?;
    if opened.is_fresh {
        set_up(&opened, &config, &handover, "made at the first start").await?;
    } else if config.dev {
        handover.follow()?;
    }
    let OpenedNode {
        store,
        dir,
        issuer,
        pki,
        link,
        tasks,
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
    let served = parts.serve(listener, tls, gateway, tasks, ending).await;
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
