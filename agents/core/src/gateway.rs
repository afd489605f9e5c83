//! The anycast gateways of segments.

use agents_nos::Vni;
use agents_nos::model::{Gateway as GatewayModel, SwitchModel};
use proto_mesh::{Gateway, Segment};
use proto_types::IpNet;

/// Gives segments of the model their gateways. A segment without VRF or valid addresses for its
/// gateway stays a segment: its hosts reach each other.
pub(crate) fn insert_gateways(
    out: &mut SwitchModel,
    segments: &[Segment],
    problems: &mut Vec<String>,
) {
    for segment in segments {
        let Some(gateway) = &segment.gateway else {
            continue;
        };
        let made = model(out, gateway);
        let vni = Vni::new(segment.vni).ok();
        let found = vni.and_then(|vni| out.segments.get_mut(&vni));
        match (found, made) {
            (Some(found), Ok(made)) => found.gateway = Some(made),
            (_, Err(problem)) => {
                problems.push(format!("gateway of segment {}: {problem}", segment.vni));
            }
            // The segment is a problem of its own.
            (None, Ok(_)) => {}
        }
    }
}

fn model(out: &SwitchModel, gateway: &Gateway) -> Result<GatewayModel, String> {
    if out.bgp.is_none() {
        return Err("is to be routed, and the agent's configuration has no [bgp]".to_owned());
    }
    let vni = Vni::new(gateway.vrf).map_err(|error| error.to_string())?;
    let mut vrfs = out.vrfs.iter();
    let vrf = vrfs.find(|(_, vrf)| vrf.l3_vni == Some(vni));
    let (vrf, _) = vrf.ok_or_else(|| format!("is for VRF {vni}, which is unknown"))?;
    let addresses = gateway.addresses.iter().map(|text| {
        let address = text.parse::<IpNet>();
        address.map_err(|_| format!("{text:?} is not an address with a prefix length"))
    });
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    GatewayModel::new(vrf.clone(), addresses).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use agents_nos::model::{Mtu, Segment as L2Segment, Table, Vrf, VrfName};

    use super::*;

    fn with(gateway: Gateway, has_bgp: bool) -> (SwitchModel, Vec<String>) {
        let vni = |number| Vni::new(number).unwrap();
        let mut out = SwitchModel::default();
        let name = VrfName::new("Vrf27").unwrap();
        let vrf = Vrf::new(vni(27), Table::new(1_000_027).unwrap());
        out.vrfs.insert(name, vrf);
        out.segments.insert(vni(9), L2Segment::new(Mtu::ETHERNET));
        if has_bgp {
            let asn = proto_types::Asn(65_001);
            out.bgp = agents_nos::model::Bgp::new(asn, [10, 0, 0, 1].into()).ok();
        }
        let segment = Segment {
            vni: 9,
            gateway: Some(gateway),
            ..Segment::default()
        };
        let mut problems = Vec::new();
        insert_gateways(&mut out, &[segment], &mut problems);
        (out, problems)
    }

    fn gateway(vrf: u32, addresses: &[&str]) -> Gateway {
        let addresses = addresses.iter().map(|text| (*text).to_owned()).collect();
        Gateway { vrf, addresses }
    }

    #[test]
    fn a_segment_gets_its_gateway() {
        let good = ["10.1.0.0/24", "169.254.1.1/32", "fe80::1/64"];
        let (out, problems) = with(gateway(27, &good), true);
        assert_eq!(problems, Vec::<String>::new());
        let made = out.segments[&Vni::new(9).unwrap()].gateway.clone().unwrap();
        assert_eq!(made.vrf().as_ref(), "Vrf27");
        assert_eq!(made.addresses().len(), 3);
    }

    #[test]
    fn a_gateway_that_cannot_be_is_said() {
        let good = ["169.254.1.1/32"];
        for (wanted, has_bgp, part) in [
            (gateway(28, &good), true, "unknown"),
            (gateway(0, &good), true, "not a VNI"),
            (gateway(27, &["leaf"]), true, "not an address"),
            (gateway(27, &[]), true, ""),
            (gateway(27, &good), false, "[bgp]"),
        ] {
            let (out, problems) = with(wanted, has_bgp);
            assert!(
                problems.len() == 1 && problems[0].contains(part),
                "{problems:?}"
            );
            assert_eq!(out.segments[&Vni::new(9).unwrap()].gateway, None);
        }
    }
}
