//! A node's dealings with its peers: the wait for a quorum, the announcement of its address and
//! level, and the renewal of its certificate.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base_runtime::Backoff;
use control_authz::{Permit, SystemActor};
use control_peers::PeerLink;
use control_pki::Pki;
use control_state::{AnnounceNode, Command, ControlNode, FEATURE_LEVEL};
use control_store::{MemberChange, MembershipError, ProposeError, Store};
use proto_identity::profile::LEAF_VALIDITY;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Pauses after a certificate could not be renewed: 5 s, doubled up to 60 s, with jitter.
const RETRY: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(60));
/// Interval between two warnings while the node waits for a quorum.
const REMIND: Duration = Duration::from_secs(10);
/// Interval between two attempts to read from the quorum.
const QUORUM_POLL: Duration = Duration::from_millis(200);

/// Waits until the cluster has a quorum with this node. Returns `false` if the node was stopped.
///
/// # Errors
/// The store stopped by itself.
pub(crate) async fn wait_for_majority(store: &Store, stop: &CancellationToken) -> Result<bool> {
    let mut told = tokio::time::Instant::now();
    loop {
        let read = tokio::select! {
            () = stop.cancelled() => return Ok(false),
            read = store.read(|_| ()) => read,
        };
        let Err(error) = read else { return Ok(true) };
        if told.elapsed() >= REMIND {
            told = tokio::time::Instant::now();
            let view = store.cluster_view_here();
            let members: Vec<_> = view.members.iter().map(|m| m.node).collect();
            tracing::warn!(error = %error, members = ?members, "waiting for a majority of the nodes");
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            reason = store.stopped() => {
                bail!("the store stopped: {}", reason.unwrap_or_default());
            }
            () = tokio::time::sleep(QUORUM_POLL) => {}
        }
    }
}

/// Announces the feature level of this program before the node listens anywhere. The recorded addresses
/// stay unchanged.
pub(crate) async fn announce_level(store: &Store) -> Result<()> {
    let node = store.node_id();
    let known = store.read_local(|tables| {
        let known = tables.get::<ControlNode>(&node);
        known.map(|node| node.mesh_addresses.clone())
    })?;
    announce(store, "", known.unwrap_or_default()).await
}

/// Announces the addresses and the feature level of this node to the cluster. An empty
/// `peer_address` leaves the address among the peers unchanged.
pub(crate) async fn announce(
    store: &Store,
    peer_address: &str,
    mesh_addresses: Vec<String>,
) -> Result<()> {
    let permit = Permit::system(SystemActor::Bootstrap);
    let announce = AnnounceNode {
        id: store.node_id(),
        peer_address: peer_address.to_owned(),
        mesh_addresses,
        level: FEATURE_LEVEL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let command = Command::new(store.now(), "metalmeshd", announce);
    let announced = store.propose(&permit, &command).await;
    announced.map_err(|e| match e {
        ProposeError::Rejected(refused) => {
            anyhow::anyhow!("the cluster refuses this node: {refused}; {}", refused.hint)
        }
        ProposeError::Store(error) => error.into(),
    })?;
    let node = store.node_id();
    let view = store.cluster_view().await;
    let known = view.members.iter().find(|m| m.node == node);
    let is_known = known.is_none_or(|m| m.address == peer_address);
    if !peer_address.is_empty() && !is_known {
        let address = peer_address.to_owned();
        let moved = MemberChange::Move { node, address };
        match store.change_members(&permit, &moved).await {
            Ok(()) => tracing::info!(address = peer_address, "the peers know the new address"),
            Err(error @ MembershipError::Store(_)) => {
                return Err(error).context("cannot tell the peers the address of this node");
            }
            Err(error) => tracing::warn!(error = %error, "the peers keep the old address"),
        }
    }
    Ok(())
}

/// Renews the node's certificate for its peers: at half of its life, and when the authority is
/// replaced.
pub(crate) fn spawn_renewal(
    tasks: &mut JoinSet<()>,
    link: PeerLink,
    pki: Pki,
    node: u64,
    stop: CancellationToken,
) {
    let mut authority = pki.watch();
    tasks.spawn(async move {
        let mut failures = 0;
        loop {
            let renewed = pki
                .peer_credential(node)
                .map_err(anyhow::Error::from)
                .and_then(|fresh| Ok(link.set_credential(fresh)?));
            let pause = match renewed {
                Ok(()) => {
                    failures = 0;
                    LEAF_VALIDITY / 2
                }
                Err(error) => {
                    tracing::warn!(error = %error, "certificate for the peers not renewed");
                    let pause = RETRY.pause(failures);
                    failures = failures.saturating_add(1);
                    pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                changed = authority.changed() => if !changed { return },
            }
        }
    });
}
