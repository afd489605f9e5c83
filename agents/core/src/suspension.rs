//! The reason why a part of a firewall is suspended.

use std::fmt;
use std::time::Duration;

use agents_nos::Vni;
use proto_types::IpNet;

use crate::suspensions::Suspended;

/// The reason why a part is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspension {
    pub(crate) excess: Excess,
    /// Time that it is suspended.
    pub(crate) wait: Duration,
}

/// A kind of route that a firewall announced, and may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Too many EVPN routes.
    Routes {
        /// EVPN routes that it announced.
        received: u64,
        /// EVPN routes that it may announce.
        limit: u64,
    },
    /// A prefix in a VNI.
    Prefix(IpNet),
}

impl Suspension {
    pub(crate) fn reason(&self, of: &Suspended) -> String {
        let (port, wait) = (&of.port, self.wait);
        match (self.excess, of.vni) {
            (Excess::Routes { received, limit }, _) => format!(
                "the firewall on port {port} announced {received} EVPN routes, and may announce \
                 {limit}: its session is away for {wait:?}"
            ),
            (Excess::Prefix(prefix), vni) => {
                let vni = Number(vni);
                format!(
                    "the firewall on port {port} announced {prefix} in VNI {vni}, where it may \
                     not: its routes of this VNI are refused for {wait:?}"
                )
            }
        }
    }
}

/// A VNI in a message.
struct Number(Option<Vni>);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |vni| vni.fmt(f))
    }
}
