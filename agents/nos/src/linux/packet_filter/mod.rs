//! The packet filter: three tables of nftables, which are the agent's alone.
//!
//! - `inet`: what firewalls send into the underlay, before it is routed or unpacked; VXLAN for the
//!   switch itself from a VRF or a bridge, which the kernel would unpack into any segment where an
//!   operator has set `udp_l3mdev_accept`; and the rate at which a port has the switch ask for hosts.
//!   It knows fragments, options and extension headers.
//! - `bridge`, `arp`: how many MAC addresses and neighbours a port teaches the switch, and how many
//!   frames to everybody it has copied. All tenants share the tables, the processor and the links.
//!
//! A packet has a mark that says whose budget it costs: the port of the machine or firewall that sent
//! it, or, if it came over the fabric, the tunnel. So a firewall with many networks has one budget,
//! and a tenant behind another leaf uses up nobody else's.
//!
//! A change replaces all three tables in one transaction. What nft lists is compared with what it
//! lists of the same filters unchanged, so that any change by hand is seen.

mod config;
mod expected;
mod kernel;
mod limits;
mod listing;
mod nft;
mod rules;
mod settings;
mod statement;

use std::time::Duration;

pub use config::FilterConfig;
pub use listing::decode;
pub use nft::NftError;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::kernel::{generation, table_flags};
pub(super) use self::nft::is_installed;
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

/// The range of marks. The chance that two ports of a switch have the same is one in a million.
const MARKS: u32 = 0x7fff_ffff;
/// The bit that marks what a firewall sent in VXLAN: its budget stays that of its port.
const OF_FIREWALL: u32 = 0x8000_0000;

/// The first word of VXLAN's header: only the flag that says that there is a VNI (RFC 7348 §5). With
/// others it is another protocol (GBP, GPE).
const VXLAN_FLAGS: u32 = 0x0800_0000;
/// IPv6 sources that need no address: those of BGP unnumbered, and of duplicate address detection.
const LINK_LOCAL: [&str; 2] = ["::", "fe80::/10"];
/// TCP port of BGP.
const BGP_PORT: u16 = 179;

/// The groups of a link (802.1Q §8.6.3), which no bridge forwards: mask and group.
const LINK_GROUPS: [&str; 2] = ["ff:ff:ff:ff:ff:f0", "01:80:c2:00:00:00"];
/// The groups by which switches speak to each other, from and to: those of IEEE 802.1, also CFM; of
/// Cisco; ERPS; MRP; Foundry; Extreme; and of the loopback test.
const CONTROL_GROUPS: [(&str, &str); 7] = [
    ("01:80:c2:00:00:00", "01:80:c2:ff:ff:ff"),
    ("01:00:0c:00:00:00", "01:00:0c:ff:ff:ff"),
    ("01:19:a7:00:00:00", "01:19:a7:ff:ff:ff"),
    ("01:15:4e:00:00:00", "01:15:4e:ff:ff:ff"),
    ("01:e0:52:00:00:00", "01:e0:52:ff:ff:ff"),
    ("00:e0:2b:00:00:00", "00:e0:2b:00:00:ff"),
    ("cf:00:00:00:00:00", "cf:00:00:00:00:01"),
];

/// The second word of VXLAN's header: the VNI, and eight bits that are zero.
fn vxlan_word(vni: Vni) -> u32 {
    vni.get() << 8
}

/// Name of the chain of a firewall's port. A device has no character in its name that nft refuses.
fn chain_name(port: &PortName) -> String {
    format!("{CHAIN_PREFIX}{port}")
}

/// Age at which a reading is repeated where the kernel says no generation: a change by hand is to be
/// seen within 5 s, also during a long pass.
const AGE_MAX: Duration = Duration::from_secs(5);

/// The last reading of the packet filter. A run of nft takes some ten milliseconds, and each step looks
/// at the switch.
#[derive(Debug, Default)]
pub(super) struct FilterReading(Mutex<Option<Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    /// Generation of the rules before they were read, so that a change meanwhile is read next time.
    generation: Option<u32>,
    at: Instant,
    filter: PacketFilter,
}

impl FilterReading {
    /// Drops the reading: nftables may have other rules from now on.
    pub(super) fn discard(&self) {
        *self.0.lock() = None;
    }

    /// Has the next pass read anew where the kernel does not say whether rules have changed.
    pub(super) fn begin_pass(&self) {
        if generation().is_none() {
            self.discard();
        }
    }

    /// The reading, if nobody can have changed the rules since.
    fn kept(&self, generation: Option<u32>) -> Option<PacketFilter> {
        let kept = self.0.lock().clone()?;
        let is_current = match generation {
            Some(_) => kept.generation == generation,
            None => kept.at.elapsed() < AGE_MAX,
        };
        is_current.then_some(kept.filter)
    }
}

impl Linux {
    /// The packet filter as it was read last, or as it is if there is no reading.
    ///
    /// # Errors
    /// As for [`Self::read_packet_filter`].
    pub(super) async fn packet_filter(&self) -> Result<PacketFilter, NftError> {
        let generation = generation();
        let mut filter = match self.filter_reading.kept(generation) {
            Some(kept) => kept,
            None => {
                let filter = self.read_packet_filter().await?;
                let kept = Kept {
                    generation,
                    at: Instant::now(),
                    filter: filter.clone(),
                };
                *self.filter_reading.0.lock() = Some(kept);
                filter
            }
        };
        // No generation tells of these.
        filter.is_in_place &= settings::are_set();
        Ok(filter)
    }

    /// The rules as they are. Without nftables, or with a table that somebody has put to sleep, there
    /// are none.
    ///
    /// # Errors
    /// When nft fails for another reason: no filter instead would be repaired, and open all others
    /// for a moment.
    async fn read_packet_filter(&self) -> Result<PacketFilter, NftError> {
        let has_flags = |family| table_flags(family, TABLE).is_some_and(|flags| flags != 0);
        if FAMILIES.into_iter().any(has_flags) {
            tracing::debug!("a table of the packet filter has flags");
            return Ok(PacketFilter::default());
        }
        let config = &self.config.filter;
        let listed = match nft::list_all().await {
            Ok(all) => match decode(&all, config) {
                Ok(filter) => return Ok(filter),
                // Somebody else's table has flags.
                Err(_) => list_tables().await,
            },
            Err(error) => Err(error),
        };
        match listed {
            Ok(listed) => decode(&listed, config).map_err(NftError::Output),
            Err(error) if error.is_absence() => {
                tracing::debug!(%error, "no packet filter");
                Ok(PacketFilter::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Applies a step of the packet filter.
    pub(super) async fn change_packet_filter(&self, step: &Step) -> Result<(), NosError> {
        settings::set()?;
        let mut model = SwitchModel {
            packet_filter: self.read_packet_filter().await?,
            ..SwitchModel::default()
        };
        let before = model.packet_filter.clone();
        interpret(&mut model, step)?;
        let (filter, config) = (&model.packet_filter, &self.config.filter);
        if *filter == before {
            return Ok(());
        }
        // Also if a time limit cuts this future here.
        self.filter_reading.discard();
        let rules = match before.is_in_place {
            true => rules::render_firewalls(filter, config),
            false => rules::render(filter, config),
        };
        Ok(nft::load(&rules).await?)
    }
}

/// Lists our tables alone.
async fn list_tables() -> Result<Vec<u8>, NftError> {
    // Not in one run: nft 1.0.6 lists the tables of one family in a run.
    let [inet, bridge, arp] = FAMILIES.map(|family| nft::list(family, TABLE));
    let (inet, bridge, arp) = tokio::try_join!(inet, bridge, arp)?;
    Ok([inet, bridge, arp].concat())
}
