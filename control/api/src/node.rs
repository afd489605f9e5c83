//! The parts of a node that the services use beside the state.

use std::sync::Arc;

use control_backup::Backups;
use control_gate::passwords::Hasher;
use control_pki::Pki;
use control_presence::Presence;
use control_state::ControlNode;
use control_store::Store;
use control_vpn::{Vpn, VpnHealth};
use control_watch::Watches;

use crate::doctor::Surveyor;
use crate::image_digest::ImageDigests;

/// Most addresses of control in a ticket. Further nodes are left out.
const ADDRESSES_MAX: usize = 16;

/// The parts of a node that serves the public API.
#[derive(Debug)]
pub struct NodeContext {
    /// Makes join tickets.
    pub pki: Pki,
    /// Addresses of the mesh for agents, host:port; written into join tickets.
    pub mesh_addresses: Vec<String>,
    /// Address of this node for other control nodes. Empty means that it listens to no peers.
    pub peer_address: String,
    /// The open watches.
    pub watches: Watches,
    /// Makes backups.
    pub backups: Backups,
    /// Finds the digests of images.
    pub image_digests: ImageDigests,
    /// Hashes passwords.
    pub hasher: Arc<Hasher>,
    /// Sessions of agents and machines.
    pub presence: Presence,
    /// The VPN. `None` means that none is configured.
    pub vpn: Option<Arc<dyn Vpn>>,
    /// The result of the last health check of the VPN.
    pub vpn_health: VpnHealth,
    /// Collects facts about the process and its machine.
    pub surveyor: Arc<dyn Surveyor>,
}

impl NodeContext {
    /// Where agents reach control: this node first, then the others of the cluster.
    pub(crate) fn control_addresses(&self, store: &Store) -> Vec<String> {
        let others = store.read_local(|tables| {
            let nodes = tables.all::<ControlNode>();
            let nodes = nodes.filter(|node| node.removed_at.is_none());
            nodes
                .flat_map(|node| node.mesh_addresses.clone())
                .collect::<Vec<_>>()
        });
        let mut all = self.mesh_addresses.clone();
        for address in others.unwrap_or_default() {
            if !all.contains(&address) && all.len() < ADDRESSES_MAX {
                all.push(address);
            }
        }
        all
    }
}
