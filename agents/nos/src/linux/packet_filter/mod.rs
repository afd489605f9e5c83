//! The packet filter: three tables of nftables, which are the agent's alone.
//!
//! - `inet`: what firewalls send into the underlay, before it is routed or unpacked; and VXLAN for
//!   the switch itself from a VRF or a bridge, which the kernel would unpack into any segment where
//!   an operator has set `udp_l3mdev_accept`. It knows fragments, options and extension headers.
//! - `bridge`, `arp`: the rate at which a port teaches the switch neighbours. All tenants share one
//!   table of them.
//!
//! A change replaces all three tables in one transaction. What nft lists is compared with what it
//! lists of the same filters unchanged, so that any change by hand is seen.

mod listing;
mod nft;
mod rules;

use listing::read;
pub use nft::NftError;
pub use listing::decode;

use super::Linux;
use crate::back_end::NosError;
use crate::interpret::interpret;
use crate::model::{PacketFilter, PortName, SwitchModel};
use crate::step::Step;
use crate::vni::Vni;

/// Name of the tables.
const TABLE: &str = "metalmesh";
/// The families that have one.
const FAMILIES: [&str; 3] = ["inet", "bridge", "arp"];
/// Begin of the name of a firewall's chain.
const CHAIN_PREFIX: &str = "firewall-";

/// Packets a second by which one port may teach the switch neighbours (ARP, ND). A port at this rate
/// has less than 20,000 neighbours in the table before it forgets them, which is a third of it.
const NEIGHBOUR_RATE: u32 = 200;
/// Such packets that a port may send at once: a host with many addresses that comes up.
const NEIGHBOUR_BURST: u32 = 400;
/// Drops what a port sends above the rate.
const ARPS: &str = "update @senders { iifname limit rate over 200/second burst 400 packets } drop";
/// The set of the ports' rates.
const SENDERS: &str = "type ifname; size 4096; flags dynamic,timeout; timeout 1m;";

/// The first word of VXLAN's header: only the flag that says that there is a VNI (RFC 7348 §5). With
/// others it is another protocol (GBP, GPE).
const VXLAN_FLAGS: u32 = 0x0800_0000;
/// IPv6 sources that need no address: those of BGP unnumbered, and of duplicate address detection.
const LINK_LOCAL: [&str; 2] = ["::", "fe80::/10"];

/// The second word of VXLAN's header: the VNI, and eight bits that are zero.
fn vxlan_word(vni: Vni) -> u32 {
    vni.get() << 8
}

/// Name of the chain of a firewall's port. A device has no character in its name that nft refuses.
fn chain_name(port: &PortName) -> String {
    format!("{CHAIN_PREFIX}{port}")
}

impl Linux {
    /// The packet filter as it is. Without nft, or with one of its tables missing, there is none.
    pub(super) async fn packet_filter(&self) -> PacketFilter {
        // Not in one run: nft 1.0.6 lists the tables of one family in a run.
        let [inet, bridge, arp] = FAMILIES.map(|family| nft::list(family, TABLE));
        let listed = tokio::try_join!(inet, bridge, arp);
        match listed.and_then(|(inet, bridge, arp)| read(&[inet, bridge, arp].concat())) {
            Ok(filter) => filter,
            Err(error) => {
                tracing::debug!(%error, "no packet filter");
                PacketFilter::default()
            }
        }
    }

    /// Applies a step of the packet filter.
    pub(super) async fn change_packet_filter(&self, step: &Step) -> Result<(), NosError> {
        let mut model = SwitchModel {
            packet_filter: self.packet_filter().await,
            ..SwitchModel::default()
        };
        let before = model.packet_filter.clone();
        interpret(&mut model, step)?;
        if model.packet_filter == before {
            return Ok(());
        }
        Ok(nft::load(&rules::render(&model.packet_filter)).await?)
    }
}
