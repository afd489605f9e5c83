//! The parts of a switch's desired state that only EVPN has, as messages.

use std::net::IpAddr;

use control_state::FabricMode;
use control_state::life::{self, PortPlacement, SessionIntent, VrfIntent};
use proto_mesh::{FabricMode as Fabric, PortNeighbour, PortPlace, SwitchBgp, Vrf};

pub(crate) fn fabric(mode: FabricMode) -> Fabric {
    match mode {
        FabricMode::Static => Fabric::Static,
        FabricMode::Evpn => Fabric::Evpn,
    }
}

/// BGP of a switch. Its AS number is in the agent's configuration.
pub(crate) fn bgp(intent: &life::SwitchDesired) -> SwitchBgp {
    // A router id is an IPv4 address, whatever the tunnel end is.
    let router_id = intent.router_id.filter(IpAddr::is_ipv4);
    SwitchBgp {
        asn: 0,
        router_id: router_id.map(|ip| ip.to_string()).unwrap_or_default(),
    }
}

pub(crate) fn vrf(vrf: VrfIntent) -> Vrf {
    Vrf {
        name: vrf.name(),
        l3_vni: vrf.l3_vni.into(),
        table: vrf.table(),
    }
}

pub(crate) fn place(place: PortPlacement) -> PortPlace {
    match place {
        PortPlacement::Static => PortPlace::Unspecified,
        PortPlacement::Quarantine => PortPlace::Quarantine,
        PortPlacement::PrivateSegment => PortPlace::PrivateSegment,
        PortPlacement::Routed => PortPlace::Routed,
        PortPlacement::Underlay => PortPlace::Underlay,
    }
}

pub(crate) fn neighbour(session: &SessionIntent) -> PortNeighbour {
    PortNeighbour {
        import_prefixes: session.imports.iter().map(ToString::to_string).collect(),
        asns: vec![session.asn.0],
        evpn_vnis: session.vnis.iter().copied().collect(),
    }
}
