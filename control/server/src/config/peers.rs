//! The section `[peers]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::address::check_address;

/// The section `[peers]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PeersSection {
    pub(super) listen: Option<SocketAddr>,
    pub(super) address: Option<String>,
    pub(super) join: bool,
    pub(super) ticket: Option<PathBuf>,
    pub(super) snapshot_bytes_per_second: Option<u64>,
}

/// The checked section `[peers]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    /// UDP address on which this node listens for its peers.
    pub(crate) listen: SocketAddr,
    /// Address by which the peers reach this node, `HOST:PORT`.
    pub(crate) address: String,
    /// `true` if a node with an empty data directory joins a cluster instead of forming one.
    pub(crate) join: bool,
    /// File of the ticket. `None` means `node.ticket` in the data directory.
    pub(crate) ticket: Option<PathBuf>,
    /// Limit for sending snapshots to one peer. `None` means no limit.
    pub(crate) snapshot_bytes_per_second: Option<u64>,
}

/// Checks the section. `None` means a cluster of one node.
pub(super) fn peers(section: PeersSection) -> Result<Option<PeerSettings>> {
    let Some(listen) = section.listen else {
        ensure!(
            section.address.is_none() && !section.join,
            "peers.listen: is missing; a node with peers needs an address of its own for them, for \
             example listen = \"0.0.0.0:4444\""
        );
        return Ok(None);
    };
    let address = match section.address {
        Some(address) => address,
        None => {
            ensure!(
                !listen.ip().is_unspecified() && listen.port() > 0,
                "peers.address: is missing; peers.listen is {listen}, which no node can dial. Name \
                 what they reach, for example address = \"control-1.example:4444\""
            );
            listen.to_string()
        }
    };
    check_address("peers.address", &address)?;
    ensure!(
        section.snapshot_bytes_per_second != Some(0),
        "peers.snapshot_bytes_per_second: must be 1 or more; leave it out for no limit"
    );
    Ok(Some(PeerSettings {
        listen,
        address,
        join: section.join,
        ticket: section.ticket,
        snapshot_bytes_per_second: section.snapshot_bytes_per_second,
    }))
}
