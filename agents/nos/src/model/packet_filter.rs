use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::error::ModelError;
use super::names::PortName;
use crate::vni::Vni;

/// The packets that ports may send to the switch itself and into the underlay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// `true` if the rules for all ports are in place, and nobody has changed a rule of ours: no
    /// VXLAN packet gets to the switch from a VRF, and no port teaches it more neighbours and MAC
    /// addresses, or sends more frames to everybody, than its rates allow. In a desired state `false`
    /// means that they stay as they are.
    pub is_in_place: bool,
    /// Ports of firewalls. A port of the underlay that is not here may send everything: it leads to
    /// a spine.
    pub firewalls: BTreeMap<PortName, VxlanFilter>,
}

/// The packets that a firewall may send from its own addresses: VXLAN of its networks, BGP and
/// neighbour discovery of its link, pings in the underlay, and what the site's configuration permits.
/// Everything else is dropped, to whichever switch it goes, and so are fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VxlanFilter {
    vnis: BTreeSet<Vni>,
    sources: BTreeSet<IpNet>,
}

impl VxlanFilter {
    /// Permits VXLAN of these VNIs, from these addresses. Prefixes are merged; empty means none.
    ///
    /// # Errors
    /// When a prefix is every address of its IP version: it would be no filter.
    pub fn new(
        vnis: impl IntoIterator<Item = Vni>,
        sources: impl IntoIterator<Item = IpNet>,
    ) -> Result<Self, ModelError> {
        let sources: Vec<IpNet> = sources.into_iter().map(|source| source.trunc()).collect();
        let sources = BTreeSet::from_iter(IpNet::aggregate(&sources));
        if let Some(open) = sources.iter().find(|source| source.prefix_len() == 0) {
            return Err(ModelError::OpenSource(*open));
        }
        Ok(Self {
            vnis: vnis.into_iter().collect(),
            sources,
        })
    }

    /// The VNIs of the firewall's networks.
    #[must_use]
    pub fn vnis(&self) -> &BTreeSet<Vni> {
        &self.vnis
    }

    /// The firewall's addresses in the underlay, as prefixes that neither overlap nor could be
    /// merged.
    #[must_use]
    pub fn sources(&self) -> &BTreeSet<IpNet> {
        &self.sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_merged_and_never_everybody() {
        let filter = |sources: &[&str]| {
            let sources = sources.iter().map(|text| text.parse().unwrap());
            VxlanFilter::new([], sources).map(|made| {
                let sources = made.sources.iter().map(ToString::to_string);
                sources.collect::<Vec<_>>().join(" ")
            })
        };
        for (given, merged) in [
            (&[][..], ""),
            (&["10.1.0.5/24", "10.1.0.7/32"], "10.1.0.0/24"),
            (&["10.1.0.4/32", "10.1.0.5/32"], "10.1.0.4/31"),
            (
                &["2001:db8::1/128", "10.1.0.5/32"],
                "10.1.0.5/32 2001:db8::1/128",
            ),
        ] {
            assert_eq!(filter(given), Ok(merged.to_owned()), "{given:?}");
        }
        for open in [&["0.0.0.0/0"][..], &["::/0"], &["0.0.0.0/1", "128.0.0.0/1"]] {
            let refused = filter(open).unwrap_err();
            assert!(matches!(refused, ModelError::OpenSource(_)), "{open:?}");
        }
    }
}
