//! Sessions, counters and optics of a switch.

mod port;

use std::collections::BTreeMap;

use crate::frr::failures::SessionFailure;
use crate::frr::sessions::BgpSession;
use crate::model::PortName;

pub use port::{LinkCounters, Optics, PortTelemetry};

/// Numbers that a switch tells beside its state: nothing is planned by them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// BGP sessions of every VRF, one entry per address family.
    pub sessions: Vec<BgpSession>,
    /// Reasons why sessions are down.
    pub failures: Vec<SessionFailure>,
    /// EVPN's tables. `None` means that the switch has no EVPN.
    pub evpn: Option<EvpnSizes>,
    /// Numbers of each port.
    pub ports: BTreeMap<PortName, PortTelemetry>,
}

/// Sizes of EVPN's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvpnSizes {
    /// VNIs of segments.
    pub l2_vnis: u32,
    /// VNIs of VRFs.
    pub l3_vnis: u32,
    /// Routes of all types.
    pub routes: u64,
}
