//! The filter of a port as a message, cut to the bounds of the contract: what is beyond them does
//! not pass.

use control_state::life;
use proto_mesh::{
    FIREWALL_PREFIXES_MAX, NETWORK_PREFIXES_MAX, NetworkFilter, PORT_PREFIXES_MAX, PORT_VNIS_MAX,
    PortFilter,
};
use proto_types::IpNet;

/// Converts the filter of a port.
pub(crate) fn message(filter: &life::PortFilter) -> PortFilter {
    let prefixes = |is_v6: bool| {
        let prefixes = filter.prefixes.iter();
        let of_version = prefixes.filter(|prefix| matches!(prefix, IpNet::V6(_)) == is_v6);
        let of_version = of_version.take(PORT_PREFIXES_MAX);
        of_version.map(ToString::to_string).collect()
    };
    PortFilter {
        asn: filter.asn.0,
        prefixes_v4: prefixes(false),
        prefixes_v6: prefixes(true),
        vnis: filter.vnis.iter().copied().take(PORT_VNIS_MAX).collect(),
        networks: networks(filter),
    }
}

/// An entry for each VNI that is sent, also for one that nothing passes in: an agent would take a
/// filter without entries for one of a control node that knows none.
fn networks(filter: &life::PortFilter) -> Vec<NetworkFilter> {
    let mut room = FIREWALL_PREFIXES_MAX;
    let networks = filter.networks.iter().take(PORT_VNIS_MAX);
    let network = |(vni, of): (&u32, &life::NetworkFilter)| {
        let most = room.min(NETWORK_PREFIXES_MAX);
        let routes = of.routes.iter().take(most).map(ToString::to_string);
        let routes: Vec<String> = routes.collect();
        let prefixes = of.prefixes.iter().take(most - routes.len());
        let prefixes: Vec<String> = prefixes.map(ToString::to_string).collect();
        room -= routes.len() + prefixes.len();
        NetworkFilter {
            vni: *vni,
            routes,
            prefixes,
        }
    };
    networks.map(network).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use proto_types::Asn;

    use super::*;

    fn hosts(count: u32) -> BTreeSet<IpNet> {
        let host = |number: u32| IpNet::from(std::net::IpAddr::from(number.to_be_bytes()));
        (0..count).map(host).collect()
    }

    #[test]
    fn a_firewall_has_so_many_prefixes_in_a_network_and_in_all() {
        let network = life::NetworkFilter {
            routes: ["0.0.0.0/0".parse().unwrap()].into(),
            prefixes: hosts(5000),
        };
        let vnis = [10, 11, 12];
        let filter = life::PortFilter {
            asn: Asn(4_210_000_001),
            prefixes: Arc::default(),
            vnis: vnis.into(),
            networks: vnis.map(|vni| (vni, network.clone())).into(),
        };
        let sent = message(&filter).networks;
        let sizes: Vec<_> = sent
            .iter()
            .map(|of| (of.vni, of.routes.len(), of.prefixes.len()))
            .collect();
        assert_eq!(sizes, [(10, 1, 4095), (11, 1, 4095), (12, 0, 0)]);
    }
}
