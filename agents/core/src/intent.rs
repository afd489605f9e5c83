use std::collections::{BTreeMap, BTreeSet};

use agents_nos::{Intent, PortIntent, SegmentIntent, Vni};
use proto_mesh::{Segment, SwitchDesired};

use crate::config::Config;

/// Smallest MTU of a segment, bytes: IPv6 needs it (RFC 8200 §5). A smaller one is raised to it.
const MTU_MIN: u32 = 1280;
/// Largest MTU of a segment, bytes: the jumbo frames of common switches. A larger one is lowered to
/// it.
const MTU_MAX: u32 = 9216;
/// MTU of a segment for which control names none, bytes.
const MTU_DEFAULT: u32 = 1500;

/// Translates control's desired state into an intent, and adds the site's configuration: the
/// uplinks in the provisioning segment, the routers in every tenant segment. Invalid parts are left
/// out and returned as problems, so that one bad port does not stop the others.
#[must_use]
pub fn intent(desired: &SwitchDesired, config: &Config) -> (Intent, Vec<String>) {
    let mut problems = Vec::new();
    let mut out = Intent::default();
    let mut provisioning = None;
    for segment in &desired.segments {
        match Vni::new(segment.vni) {
            Ok(vni) => {
                out.segments
                    .insert(vni, segment_intent(segment, config, &mut problems));
                provisioning = provisioning.or_else(|| segment.provisioning.then_some(vni));
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    out.ports = ports(desired, &mut problems);
    for uplink in &config.uplinks {
        let asked = PortIntent {
            segment: provisioning,
            admin_up: true,
        };
        out.ports.insert(uplink.clone(), asked);
    }
    (out, problems)
}

fn ports(desired: &SwitchDesired, problems: &mut Vec<String>) -> BTreeMap<String, PortIntent> {
    let mut out = BTreeMap::new();
    for port in &desired.ports {
        let segment = match port.vni {
            0 => None,
            number => Vni::new(number)
                .map_err(|error| problems.push(format!("port {}: {error}", port.name)))
                .ok(),
        };
        out.insert(
            port.name.clone(),
            PortIntent {
                segment,
                admin_up: port.admin_up,
            },
        );
    }
    out
}

fn segment_intent(segment: &Segment, config: &Config, problems: &mut Vec<String>) -> SegmentIntent {
    let mtu = match segment.mtu {
        0 => MTU_DEFAULT,
        mtu => mtu.clamp(MTU_MIN, MTU_MAX),
    };
    let mut remotes = BTreeSet::new();
    for text in &segment.remote_vteps {
        match text.parse() {
            Ok(remote) => {
                remotes.insert(remote);
            }
            Err(_) => problems.push(format!(
                "segment {}: {text:?} is not an address",
                segment.vni
            )),
        }
    }
    if !segment.provisioning {
        remotes.extend(&config.gateways);
    }
    // A tunnel to the switch itself would return its own broadcasts to it.
    remotes.remove(&config.vtep);
    SegmentIntent { mtu, remotes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            rack: "r1".into(),
            room: String::new(),
            management_ip: [10, 90, 0, 11].into(),
            vtep: [10, 91, 0, 11].into(),
            ports: vec!["swp*".into()],
            uplinks: vec!["up1".into()],
            gateways: vec![[10, 91, 0, 1].into()],
        }
    }

    fn segment(vni: u32, provisioning: bool, remotes: &[&str]) -> Segment {
        let remote_vteps = remotes.iter().map(|r| (*r).to_owned()).collect();
        Segment {
            vni,
            provisioning,
            remote_vteps,
            mtu: 0,
        }
    }

    fn port(name: &str, vni: u32) -> proto_mesh::PortIntent {
        proto_mesh::PortIntent {
            name: name.into(),
            vni,
            admin_up: true,
            traceparent: String::new(),
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
        let place = |port: &str| intent.ports[port].segment.map(Vni::get);
        assert_eq!(place("up1"), Some(4000));
        assert_eq!(place("swp1"), Some(4000));
        assert_eq!(place("swp2"), Some(27));
        assert_eq!(place("swp3"), None);
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
            ports: vec![port("swp1", 1 << 24)],
            segments: vec![segment(0, false, &[]), segment(9, false, &["leaf2"])],
            ..SwitchDesired::default()
        };
        let (intent, problems) = intent(&desired, &config());
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(intent.ports["swp1"].segment, None);
        assert_eq!(
            intent.ports["up1"].segment, None,
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
            assert_eq!(segment_intent(&one, &config(), &mut Vec::new()).mtu, got);
        }
    }
}
