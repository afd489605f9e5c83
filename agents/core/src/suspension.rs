use std::time::Duration;

use agents_nos::Vni;
use proto_types::IpNet;

/// A part of what a port announces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suspended {
    /// Port of the firewall, or of a machine.
    pub(crate) port: String,
    /// The VNI whose routes are refused. `None` means that the session is away.
    pub(crate) vni: Option<Vni>,
}

/// The reason why a part is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspension {
    pub(crate) excess: Excess,
    /// Time that it is suspended.
    pub(crate) wait: Duration,
}

/// An announcement that a port may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Too many EVPN routes.
    Routes {
        /// EVPN routes that it announced.
        received: u64,
        /// EVPN routes that it may announce.
        limit: u64,
    },
    /// Too many routes of the machines of a VRF, of which this port's has the most.
    Vrf {
        /// L3 VNI of the VRF.
        vrf: u32,
        /// Routes that they announced.
        received: u64,
        /// Routes that they may announce.
        limit: u64,
    },
    /// A prefix in a VNI.
    Prefix(IpNet),
}

impl Suspension {
    /// The reason in words.
    pub(crate) fn reason(&self, of: &Suspended) -> String {
        let (port, wait) = (&of.port, self.wait);
        match (self.excess, of.vni) {
            (Excess::Routes { received, limit }, _) => format!(
                "the firewall on port {port} announced {received} EVPN routes, and may announce \
                 {limit}: its session is away for {wait:?}"
            ),
            (
                Excess::Vrf {
                    vrf,
                    received,
                    limit,
                },
                _,
            ) => format!(
                "the machines in VRF {vrf} announced {received} routes at this leaf, and may \
                 announce {limit}: the session of the one on port {port}, which has the most, is \
                 away for {wait:?}"
            ),
            (Excess::Prefix(prefix), vni) => {
                let vni = vni.map_or_else(String::new, |vni| vni.to_string());
                format!(
                    "the firewall on port {port} announced {prefix} in VNI {vni}, where it may \
                     not: its routes of this VNI are refused for {wait:?}"
                )
            }
        }
    }
}
