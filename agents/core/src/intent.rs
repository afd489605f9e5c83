use std::collections::BTreeMap;

use agents_nos::model::{Mtu, Port, PortName, Segment as L2Segment, SwitchModel, Tunnel};
use agents_nos::{Membership, Vni};
use proto_mesh::{PortIntent, PortPlace, Segment, SwitchDesired};

use crate::config::Config;
use crate::gateway::insert_gateways;
use crate::routing::{insert_bgp, insert_session, insert_vrfs, vxlan_filter};

/// Translates control's desired state into the model of a switch, and adds the site's
/// configuration: the uplinks in the provisioning segment, the routers in every tenant segment.
/// Invalid parts are left out and returned as problems, so that one bad port does not stop the
/// others.
///
/// Ports of machines are private in the provisioning segment: machines without a tenant reach the
/// uplinks, and not each other. Without BGP in the configuration a port that control wants routed is
/// a problem, and is isolated.
#[must_use]
pub fn intent(desired: &SwitchDesired, config: &Config) -> (SwitchModel, Vec<String>) {
    let mut problems = Vec::new();
    let mut out = SwitchModel {
        vtep: Some(config.vtep),
        ..SwitchModel::default()
    };
    // A back-end that cannot filter leaves it.
    out.packet_filter.is_in_place = true;
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
    insert_bgp(&mut out, config, &mut problems);
    if let Some(bgp) = &mut out.bgp {
        bgp.is_draining = desired.drained;
    }
    insert_vrfs(&mut out, &desired.vrfs, &mut problems);
    insert_gateways(&mut out, &desired.segments, &mut problems);
    // A port that the configuration keeps for uplinks or spines may be registered from before.
    let ports = desired.ports.iter();
    for port in ports.filter(|port| config.is_front(&port.name)) {
        let place = place(port, &out, &kinds).unwrap_or_else(|problem| {
            problems.push(format!("port {}: {problem}", port.name));
            Membership::Quarantine
        });
        insert_port(&mut out, &port.name, port.admin_up, place, &mut problems);
        insert_vxlan_filter(&mut out, port, &mut problems);
        insert_neighbour(&mut out, port, config, &mut problems);
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

/// The place of a port.
///
/// # Errors
/// The reason why it cannot be there.
fn place(
    port: &PortIntent,
    out: &SwitchModel,
    kinds: &BTreeMap<Vni, bool>,
) -> Result<Membership, String> {
    if port.vni == 0 {
        return Ok(Membership::Quarantine);
    }
    let vni = Vni::new(port.vni).map_err(|error| error.to_string())?;
    let has_bgp = out.bgp.is_some();
    let no_bgp = || "is to be routed, and the agent's configuration has no [bgp]".to_owned();
    match PortPlace::try_from(port.place) {
        Ok(PortPlace::Unspecified) => Ok(Membership::Segment {
            vni,
            is_private: kinds.get(&vni).copied().unwrap_or(false),
        }),
        Ok(PortPlace::Routed) => {
            let mut vrfs = out.vrfs.iter();
            let vrf = vrfs.find(|(_, vrf)| vrf.l3_vni == Some(vni));
            let (vrf, _) = vrf.ok_or_else(|| format!("is for VRF {vni}, which is unknown"))?;
            let routed = Membership::Routed(vrf.clone());
            has_bgp.then_some(routed).ok_or_else(no_bgp)
        }
        Ok(PortPlace::Underlay) => has_bgp.then_some(Membership::Underlay).ok_or_else(no_bgp),
        Ok(PortPlace::Other) | Err(_) => Err(format!("place {} is unknown", port.place)),
    }
}

/// Inserts the filter of a firewall's port: every port of the underlay that faces machines. One
/// whose filter is missing or invalid may send nothing.
fn insert_vxlan_filter(out: &mut SwitchModel, port: &PortIntent, problems: &mut Vec<String>) {
    let Ok(name) = PortName::new(&port.name) else {
        return;
    };
    let place = out.ports.get(&name).map(|port| &port.membership);
    if place != Some(&Membership::Underlay) {
        return;
    }
    let filter = port.filter.as_ref().map(vxlan_filter).transpose();
    let filter = filter.unwrap_or_else(|problem| {
        problems.push(format!("VXLAN filter of port {name}: {problem}"));
        None
    });
    let firewalls = &mut out.packet_filter.firewalls;
    firewalls.insert(name, filter.unwrap_or_default());
}

/// Inserts the BGP session of a routed port.
fn insert_neighbour(
    out: &mut SwitchModel,
    port: &PortIntent,
    config: &Config,
    problems: &mut Vec<String>,
) {
    let (Some(settings), Some(filter)) = (&config.bgp, &port.filter) else {
        return;
    };
    let Ok(name) = PortName::new(&port.name) else {
        return;
    };
    let place = out.ports.get(&name).map(|port| port.membership.clone());
    let routed = place.filter(|place| {
        let is_underlay = *place == Membership::Underlay;
        is_underlay || matches!(place, Membership::Routed(_))
    });
    let Some(place) = routed else { return };
    if let Err(problem) = insert_session(out, settings, &name, &place, filter) {
        problems.push(format!("session on port {name}: {problem}"));
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
    if segment.provisioning {
        end_provisioning(&mut out, config);
    } else {
        out.remotes.extend(&config.gateways);
    }
    // A tunnel to the switch itself would return its own broadcasts to it.
    out.remotes.remove(&config.vtep);
    out
}

/// Makes the provisioning segment a tree with the uplinks as its root, so that no machine without a
/// tenant reaches one at another leaf: machines reach leaves with uplinks, these send what comes
/// over tunnels to their uplinks only, and leaves without uplinks have no tunnel to each other.
fn end_provisioning(out: &mut L2Segment, config: &Config) {
    let is_root = !config.uplinks.is_empty();
    if is_root {
        // Two roots are connected behind their uplinks already: a tunnel would close a loop.
        for other in &config.uplink_vteps {
            out.remotes.remove(other);
        }
    } else {
        out.remotes = config.uplink_vteps.iter().copied().collect();
    }
    // EVPN floods a segment to every leaf that has it, and FRR knows no leaves of a tree
    // (RFC 8317): there the segment ends at the switch.
    if config.bgp.is_some() || out.remotes.is_empty() {
        out.remotes.clear();
        out.tunnel = Tunnel::Absent;
    } else if is_root {
        out.tunnel = Tunnel::Private;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BgpConfig;

    fn config() -> Config {
        Config {
            uplinks: vec!["up1".into()],
            gateways: vec![[10, 91, 0, 1].into()],
            ..Config::new("r1", [10, 90, 0, 11].into(), [10, 91, 0, 11].into())
        }
    }

    fn segment(vni: u32, provisioning: bool, remotes: &[&str]) -> Segment {
        let remote_vteps = remotes.iter().map(|r| (*r).to_owned()).collect();
        Segment {
            vni,
            provisioning,
            remote_vteps,
            ..Segment::default()
        }
    }

    fn port(name: &str, vni: u32) -> proto_mesh::PortIntent {
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
        let (intent, problems) = intent(&desired, &config());
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
    fn provisioning_is_a_tree_with_the_uplinks_as_its_root() {
        let (root, leaf): (std::net::IpAddr, std::net::IpAddr) =
            ([10, 91, 0, 11].into(), [10, 91, 0, 12].into());
        let wire = segment(4000, true, &["10.91.0.11", "10.91.0.12", "10.91.0.13"]);
        let made = |vtep, uplinks: &[&str], roots: &[std::net::IpAddr], bgp| {
            let config = Config {
                vtep,
                uplinks: uplinks.iter().map(|port| (*port).to_owned()).collect(),
                uplink_vteps: roots.to_vec(),
                bgp,
                ..config()
            };
            let made = l2_segment(&wire, &config, &mut Vec::new());
            let remotes: Vec<_> = made.remotes.iter().map(ToString::to_string).collect();
            (made.tunnel, remotes.join(" "))
        };
        let is = |tunnel, remotes: &str| (tunnel, remotes.to_owned());
        let third = [10, 91, 0, 13].into();
        for (what, made, want) in [
            (
                "a root",
                made(root, &["up1"], &[root], None),
                is(Tunnel::Private, "10.91.0.12 10.91.0.13"),
            ),
            (
                "one of two roots",
                made(root, &["up1"], &[root, third], None),
                is(Tunnel::Private, "10.91.0.12"),
            ),
            (
                "a root without a list",
                made(root, &["up1"], &[], None),
                is(Tunnel::Private, "10.91.0.12 10.91.0.13"),
            ),
            (
                "a leaf of the tree",
                made(leaf, &[], &[root], None),
                is(Tunnel::Open, "10.91.0.11"),
            ),
            (
                "a leaf that knows no root",
                made(leaf, &[], &[], None),
                is(Tunnel::Absent, ""),
            ),
            (
                "EVPN",
                made(root, &["up1"], &[root], Some(BgpConfig::default())),
                is(Tunnel::Absent, ""),
            ),
        ] {
            assert_eq!(made, want, "{what}");
        }
    }

    #[test]
    fn nonsense_is_said_and_left_out() {
        let desired = SwitchDesired {
            ports: vec![port("swp1", 1 << 24), port("swp 2", 9)],
            segments: vec![segment(0, false, &[]), segment(9, false, &["leaf2"])],
            ..SwitchDesired::default()
        };
        let (intent, problems) = intent(&desired, &config());
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
