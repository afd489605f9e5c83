//! One node: the store opened, the parts wired, everything stopped in order.

mod open;
mod parts;

pub(crate) use open::{DATA_KEY, SEALING_KEY};

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use control_gateway::{Gateway, GatewayConfig};
use control_pki::Pki;
use control_presence::Presence;
use control_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::Handover;
use crate::config::Config;
use crate::{Run, metrics, peers, tls};
use open::{Opened, close, open};
use parts::Parts;

/// `metalmeshd init`: the data directory and its first token.
pub(crate) async fn init(config: Config, run: &Run, stop: CancellationToken) -> Result<()> {
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
        handover.has_place(),
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

/// `metalmeshd token`: a new admin token for who lost the last.
pub(crate) async fn token(config: Config, run: &Run, stop: CancellationToken) -> Result<()> {
    ensure!(config.data_dir.is_some(), "name the node's --data-dir");
    let handover = Handover::new(run, config.api_listen, config.tls.is_some())?;
    ensure!(
        handover.has_place(),
        "name where the admin token goes: --token-file FILE"
    );
    let Some(opened) = open(&config, &stop).await? else {
        bail!("stopped before the node was ready");
    };
    let outcome = give(&opened, &handover, "made by metalmeshd token").await;
    close(opened, &stop).await;
    outcome
}

/// Hands an admin token over.
async fn give(opened: &Opened, handover: &Handover, why: &str) -> Result<()> {
    // A cluster whose nodes have not said what they know refuses all that is newer than level 1,
    // the operator's token too.
    peers::announce_level(&opened.store).await?;
    handover.give(&opened.store, &opened.issuer, why).await
}

/// Hands the first admin token over and only then calls the cluster set up: a crash in between
/// makes another token, never none.
async fn set_up(opened: &Opened, config: &Config, handover: &Handover, why: &str) -> Result<()> {
    if handover.has_place() {
        give(opened, handover, why).await?;
    } else {
        tracing::warn!("no admin token was made; get one with: metalmeshd token");
    }
    control_gate::bootstrap::tenants(&opened.store, &config.provider).await?;
    Ok(())
}

/// Serves until stopped.
pub(crate) async fn run(config: Config, run: &Run, stop: CancellationToken) -> Result<()> {
    let listener = TcpListener::bind(config.api_listen)
        .await
        .with_context(|| format!("api.listen: cannot listen on {}", config.api_listen))?;
    let api = listener.local_addr()?;
    let metrics = metrics::bind(config.metrics_listen).await?;
    let tls = config.tls.as_ref().map(tls::server_config).transpose()?;
    let Some(opened) = open(&config, &stop).await? else {
        tracing::info!("stopped before the node was ready");
        return Ok(());
    };
    let handover = Handover::new(run, api, tls.is_some())?;
    if opened.is_fresh {
        set_up(&opened, &config, &handover, "made at the first start").await?;
    } else if config.dev {
        handover.follow()?;
    }
    let Opened {
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
    let parts = Parts {
        store: store.clone(),
        dir,
        issuer,
        pki,
        presence,
        backups,
        seal,
        metrics,
        mesh,
        mesh_addresses,
        peer_address,
        config: &config,
    };
    let served = parts.serve(listener, tls, gateway, tasks, stop).await;
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

/// Port 0 means any: it has to be known before the first ticket names it.
fn free_port(address: SocketAddr) -> std::io::Result<SocketAddr> {
    if address.port() != 0 {
        return Ok(address);
    }
    std::net::UdpSocket::bind(address)?.local_addr()
}
