//! The size of a switch's desired state, which travels as one message.

use prost::Message;
use proto_link::limits::RESPONSE_LEN_MAX;
use proto_mesh::{PORT_PREFIXES_MAX, PortFilter, SwitchDesired};

/// Room that the message leaves for its seal: signature, certificates and names, bytes.
const SEAL_ROOM: usize = 256 * 1024;
/// Largest desired state of a switch before its seal, bytes. A larger one loses prefixes of its
/// largest filters.
pub(crate) const LEN_MAX: usize = RESPONSE_LEN_MAX - SEAL_ROOM;

/// Shortens the largest filters until the message can be delivered. Undelivered, the prefixes of
/// one tenant would keep every port of the switch from its next state. Ports with fewer prefixes
/// than the others keep all of theirs; what is left out of a filter does not pass there.
pub(crate) fn fit(message: &mut SwitchDesired) {
    let mut most = PORT_PREFIXES_MAX;
    while message.encoded_len() > LEN_MAX && most > 0 {
        most /= 2;
        let mut shortened = Vec::new();
        for port in &mut message.ports {
            if port.filter.as_mut().is_some_and(|filter| cut(filter, most)) {
                shortened.push(format!("{} in VRF {}", port.name, port.vni));
            }
        }
        let ports = shortened.join(", ");
        tracing::warn!(
            most,
            ports,
            "filters shortened: the desired state is too long"
        );
    }
}

/// `true` if the filter had more prefixes.
fn cut(filter: &mut PortFilter, most: usize) -> bool {
    let mut is_cut = false;
    let networks = filter.networks.iter_mut();
    let networks = networks.flat_map(|network| [&mut network.routes, &mut network.prefixes]);
    let own = [&mut filter.prefixes_v4, &mut filter.prefixes_v6];
    for prefixes in own.into_iter().chain(networks) {
        is_cut |= prefixes.len() > most;
        prefixes.truncate(most);
    }
    is_cut
}

#[cfg(test)]
mod tests {
    use proto_mesh::{NetworkFilter, PORT_VNIS_MAX, PortIntent, Segment, Vrf};

    use super::*;

    /// A filter with this number of the longest prefixes of each version.
    fn filter(prefixes: usize) -> PortFilter {
        let v6 = |number: usize| format!("fdff:ffff:ffff:ffff:ffff:ffff:ffff:{:04x}/128", number);
        PortFilter {
            asn: u32::MAX,
            prefixes_v4: (0..prefixes).map(|_| "255.255.255.255/32".into()).collect(),
            prefixes_v6: (0..prefixes).map(v6).collect(),
            ..PortFilter::default()
        }
    }

    fn state(ports: usize, filter: &PortFilter) -> SwitchDesired {
        let port = |number: usize| PortIntent {
            name: format!("Ethernet{number}"),
            vni: 8_000_000 + u32::try_from(number).unwrap(),
            admin_up: true,
            filter: Some(filter.clone()),
            ..PortIntent::default()
        };
        SwitchDesired {
            ports: (0..ports).map(port).collect(),
            ..SwitchDesired::default()
        }
    }

    #[test]
    fn the_largest_filters_of_64_ports_are_too_long_for_one_message() {
        let port = state(1, &filter(PORT_PREFIXES_MAX)).encoded_len();
        assert!((260_000..280_000).contains(&port), "{port} bytes");
        let fits = LEN_MAX / port;
        assert!((58..64).contains(&fits), "{fits} ports");
        let mut message = state(65, &filter(PORT_PREFIXES_MAX));
        assert!(message.encoded_len() > RESPONSE_LEN_MAX);
        fit(&mut message);
        assert!(message.encoded_len() <= LEN_MAX);
        let halved = message.ports[64].filter.clone().unwrap();
        assert_eq!(halved.prefixes_v6.len(), PORT_PREFIXES_MAX / 2);
    }

    /// 512 ports are the most of a switch.
    #[test]
    fn the_largest_state_of_all_is_delivered() {
        let mut message = state(512, &filter(PORT_PREFIXES_MAX));
        for port in &mut message.ports {
            let vnis = 0..u32::try_from(PORT_VNIS_MAX).unwrap();
            let filter = port.filter.as_mut().unwrap();
            filter.vnis = vnis.map(|vni| 8_000_000 + vni).collect();
            let networks = filter.vnis.iter().map(|vni| NetworkFilter {
                vni: *vni,
                prefixes: filter.prefixes_v6[..1].to_vec(),
                ..NetworkFilter::default()
            });
            filter.networks = networks.collect();
            port.traceparent = "0".repeat(55);
        }
        let segment = |vni| Segment {
            vni,
            remote_vteps: vec!["255.255.255.255".into(); 1_000],
            ..Segment::default()
        };
        message.segments = (0..512).map(segment).collect();
        let vrf = |vni| Vrf {
            vni,
            name: format!("Vrf{vni}"),
            table: vni,
        };
        message.vrfs = (8_000_000..8_000_512).map(vrf).collect();
        fit(&mut message);
        assert!(
            message.encoded_len() <= LEN_MAX,
            "{}",
            message.encoded_len()
        );
    }

    #[test]
    fn ports_with_fewer_prefixes_keep_all_of_theirs() {
        let mut message = state(65, &filter(PORT_PREFIXES_MAX));
        let small = filter(100);
        message.ports[7].filter = Some(small.clone());
        fit(&mut message);
        assert_eq!(message.ports[7].filter, Some(small));
        let mut fitting = state(10, &filter(PORT_PREFIXES_MAX));
        let before = fitting.clone();
        fit(&mut fitting);
        assert_eq!(fitting, before);
    }
}
