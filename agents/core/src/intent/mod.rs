mod evpn;
mod session;
#[cfg(test)]
mod tests_evpn;

use std::collections::BTreeMap;

use agents_nos::model::{Mtu, Port, PortName, Segment as L2Segment, SwitchModel};
use agents_nos::{Capability, Membership, Vni};
use proto_mesh::{FabricMode, PortIntent, Segment, SwitchDesired};

use crate::config::Config;

/// Translates control's desired state into the model of a switch, and adds the site's
/// configuration: the uplinks in the provisioning segment, the routers in every tenant segment.
/// Invalid parts are left out and returned as problems, so that one bad port does not stop the
/// others.
///
/// Ports of machines are private in the provisioning segment: machines without a tenant reach the
/// uplinks, and not each other.
///
/// In a partition with EVPN the ports of tenants are routed in VRFs, with one BGP session each. Its
/// route maps and lists are named `MM-<port>-in` and `MM-<port>-out`. A switch whose `capabilities`
/// lack BGP, or whose configuration has no AS number, keeps these ports in quarantine.
#[must_use]
pub fn intent(
    desired: &SwitchDesired,
    config: &Config,
    capabilities: &[Capability],
) -> (SwitchModel, Vec<String>) {
    if desired.fabric() == FabricMode::Evpn {
        return evpn::EvpnIntent::new(desired, config).build(capabilities);
    }
    let mut problems = Vec::new();
    let mut out = SwitchModel {
        vtep: Some(config.vtep),
        ..SwitchModel::default()
    };
    // `true` for a segment that machines boot in.
    let mut kinds: BTreeMap<Vni, bool> = BTreeMap::new();
    let mut provisioning = None;
    for segment in &desired.segments {
        match Vni::new(segment.vni) {
            Ok(vni) => {
                out.segments
                    .insert(vni, l2_segment(segment, config, &mut problems));
                kinds.insert(vni, segment.provisioning);
                provisioning = provisioning.or_else(|| segment.provisioning.then_some(vni));
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    for port in &desired.ports {
        let place = place(port, &kinds, &mut problems);
        insert_port(&mut out, &port.name, port.admin_up, place, &mut problems);
    }
    for uplink in &config.uplinks {
        let place = provisioning.map_or(Membership::Quarantine, |vni| Membership::Segment {
            vni,
            is_private: false,
        });
        insert_port(&mut out, uplink, true, place, &mut problems);
    }
    (out, problems)
}

fn insert_port(
    out: &mut SwitchModel,
    name: &str,
    admin_up: bool,
    membership: Membership,
    problems: &mut Vec<String>,
) {
    let port = Port {
        admin_up,
        mtu: None,
        membership,
    };
    match PortName::new(name) {
        Ok(name) => {
            out.ports.insert(name, port);
        }
        Err(error) => problems.push(error.to_string()),
    }
}

fn place(port: &PortIntent, kinds: &BTreeMap<Vni, bool>, problems: &mut Vec<String>) -> Membership {
    if port.vni == 0 {
        return Membership::Quarantine;
    }
    match Vni::new(port.vni) {
        Ok(vni) => Membership::Segment {
            vni,
            is_private: kinds.get(&vni).copied().unwrap_or(false),
        },
        Err(error) => {
            problems.push(format!("port {}: {error}", port.name));
            Membership::Quarantine
        }
    }
}

fn l2_segment(segment: &Segment, config: &Config, problems: &mut Vec<String>) -> L2Segment {
    let mtu = match segment.mtu {
        0 => Mtu::ETHERNET,
        mtu => Mtu::nearest(mtu),
    };
    let mut out = L2Segment::new(mtu);
    for text in &segment.remote_vteps {
        match text.parse() {
            Ok(remote) => {
                out.remotes.insert(remote);
            }
            Err(_) => problems.push(format!(
                "segment {}: {text:?} is not an address",
                segment.vni
            )),
        }
    }
    if !segment.provisioning {
        out.remotes.extend(&config.gateways);
    }
    // A tunnel to the switch itself would return its own broadcasts to it.
    out.remotes.remove(&config.vtep);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn config() -> Config {
        Config {
            rack: "r1".into(),
            room: String::new(),
            management_ip: [10, 90, 0, 11].into(),
            vtep: [10, 91, 0, 11].into(),
            ports: vec!["swp*".into()],
            uplinks: vec!["up1".into()],
            gateways: vec![[10, 91, 0, 1].into()],
            bgp: None,
        }
    }

    pub(super) fn segment(vni: u32, provisioning: bool, remotes: &[&str]) -> Segment {
        let remote_vteps = remotes.iter().map(|r| (*r).to_owned()).collect();
        Segment {
            vni,
            provisioning,
            remote_vteps,
            mtu: 0,
            gateway: None,
        }
    }

    pub(super) fn port(name: &str, vni: u32) -> proto_mesh::PortIntent {
        proto_mesh::PortIntent {
            name: name.into(),
            vni,
            admin_up: true,
            ..proto_mesh::PortIntent::default()
        }
    }

    #[test]
    fn the_site_adds_uplinks_and_routers() {
        let desired = SwitchDesired {
            ports: vec![port("swp1", 4000), port("swp2", 27), port("swp3", 0)],
            segments: vec![
                segment(4000, true, &["10.91.0.12"]),
                segment(27, false, &["10.91.0.11", "10.91.0.12"]),
            ],
            ..SwitchDesired::default()
        };
        let (intent, problems) = intent(&desired, &config(), &[]);
        assert_eq!(problems, Vec::<String>::new());
        let place = |port: &str| intent.ports[port].membership.clone();
        let segment = |number, is_private| Membership::Segment {
            vni: Vni::new(number).unwrap(),
            is_private,
        };
        assert_eq!(place("up1"), segment(4000, false));
        assert_eq!(place("swp1"), segment(4000, true));
        assert_eq!(place("swp2"), segment(27, false));
        assert_eq!(place("swp3"), Membership::Quarantine);
        assert_eq!(intent.vtep, Some(config().vtep));
        let remotes = |vni: u32| {
            let segment = &intent.segments[&Vni::new(vni).unwrap()];
            segment
                .remotes
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            remotes(4000),
            ["10.91.0.12"],
            "routers have no leg in provisioning"
        );
        assert_eq!(
            remotes(27),
            ["10.91.0.1", "10.91.0.12"],
            "a switch is not its own remote"
        );
    }

    #[test]
    fn nonsense_is_said_and_left_out() {
        let desired = SwitchDesired {
            ports: vec![port("swp1", 1 << 24), port("swp 2", 9)],
            segments: vec![segment(0, false, &[]), segment(9, false, &["leaf2"])],
            ..SwitchDesired::default()
        };
        let (intent, problems) = intent(&desired, &config(), &[]);
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert_eq!(intent.ports["swp1"].membership, Membership::Quarantine);
        assert_eq!(
            intent.ports["up1"].membership,
            Membership::Quarantine,
            "no provisioning segment, no uplink"
        );
        assert_eq!(intent.segments.len(), 1);
    }

    #[test]
    fn an_mtu_stays_within_bounds() {
        for (asked, got) in [(0, 1500), (9000, 9000), (1, 1280), (u32::MAX, 9216)] {
            let one = Segment {
                mtu: asked,
                ..segment(1, false, &[])
            };
            let made = l2_segment(&one, &config(), &mut Vec::new());
            assert_eq!(made.mtu.get(), got);
        }
    }
}
