use std::collections::BTreeMap;

use super::*;
use crate::intent::{PortIntent, SegmentIntent};
use crate::state::{PortObserved, SegmentObserved};

fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// Ports as (name, place: 0 isolated / VNI, up), segments as (VNI, last bytes of remotes).
fn observed(ports: &[(&str, u32, bool)], segments: &[(u32, &[u8])]) -> SwitchState {
    SwitchState {
        ports: ports
            .iter()
            .map(|(name, place, admin_up)| {
                let place = Vni::new(*place).map_or(PortPlace::Isolated, PortPlace::Segment);
                let seen = PortObserved {
                    mac: [2; 6],
                    admin_up: *admin_up,
                    oper_up: *admin_up,
                    place,
                };
                ((*name).to_owned(), seen)
            })
            .collect(),
        segments: segments
            .iter()
            .map(|(number, remotes)| {
                let remotes = remotes.iter().map(|r| address(*r)).collect();
                (
                    vni(*number),
                    SegmentObserved {
                        mtu: 1500,
                        remotes,
                        intact: true,
                    },
                )
            })
            .collect(),
    }
}

fn intent(ports: &[(&str, u32, bool)], segments: &[(u32, &[u8])]) -> Intent {
    let ports: BTreeMap<_, _> = ports
        .iter()
        .map(|(name, number, admin_up)| {
            let asked = PortIntent {
                segment: Vni::new(*number).ok(),
                admin_up: *admin_up,
            };
            ((*name).to_owned(), asked)
        })
        .collect();
    let segments = segments
        .iter()
        .map(|(number, remotes)| {
            let remotes = remotes.iter().map(|r| address(*r)).collect();
            (vni(*number), SegmentIntent { mtu: 1500, remotes })
        })
        .collect();
    Intent { ports, segments }
}

fn isolate(port: &str) -> Delta {
    Delta::Isolate { port: port.into() }
}

fn enter(port: &str, number: u32) -> Delta {
    Delta::Move {
        port: port.into(),
        vni: vni(number),
    }
}

fn admin(port: &str, up: bool) -> Delta {
    Delta::SetAdmin {
        port: port.into(),
        up,
    }
}

fn ensure(number: u32) -> Delta {
    Delta::EnsureSegment {
        vni: vni(number),
        mtu: 1500,
    }
}

fn add(number: u32, last: u8) -> Delta {
    Delta::AddRemote {
        vni: vni(number),
        remote: address(last),
    }
}

fn cut(number: u32, last: u8) -> Delta {
    Delta::RemoveRemote {
        vni: vni(number),
        remote: address(last),
    }
}

fn remove(number: u32) -> Delta {
    Delta::RemoveSegment { vni: vni(number) }
}

struct Case {
    name: &'static str,
    observed: SwitchState,
    intent: Intent,
    deltas: Vec<Delta>,
}

fn moving_ports() -> Vec<Case> {
    vec![
        Case {
            name: "a fresh switch",
            observed: observed(&[("p1", 0, false), ("p2", 0, true)], &[]),
            intent: intent(&[("p1", 4000, true), ("p2", 4000, true)], &[(4000, &[2])]),
            deltas: vec![
                ensure(4000),
                add(4000, 2),
                enter("p1", 4000),
                enter("p2", 4000),
                admin("p1", true),
            ],
        },
        Case {
            name: "from provisioning to a tenant, and the emptied segment goes",
            observed: observed(&[("p1", 4000, true)], &[(4000, &[])]),
            intent: intent(&[("p1", 10, true)], &[(10, &[1])]),
            deltas: vec![
                isolate("p1"),
                ensure(10),
                add(10, 1),
                enter("p1", 10),
                remove(4000),
            ],
        },
        Case {
            name: "isolation needs no segment",
            observed: observed(&[("p1", 10, true)], &[(10, &[])]),
            intent: intent(&[("p1", 0, true)], &[]),
            deltas: vec![isolate("p1"), remove(10)],
        },
        Case {
            name: "a port goes down before it leaves, another comes up after it entered",
            observed: observed(&[("p1", 10, true), ("p2", 0, false)], &[(10, &[])]),
            intent: intent(&[("p1", 0, false), ("p2", 10, true)], &[(10, &[])]),
            deltas: vec![
                admin("p1", false),
                isolate("p1"),
                enter("p2", 10),
                admin("p2", true),
            ],
        },
        Case {
            name: "a port that nobody names is isolated and otherwise left alone",
            observed: observed(&[("p1", 10, true), ("p9", 10, true)], &[(10, &[])]),
            intent: intent(&[("p1", 10, true)], &[(10, &[])]),
            deltas: vec![isolate("p9")],
        },
    ]
}

fn changing_segments() -> Vec<Case> {
    let mut broken = observed(&[("p1", 10, true)], &[(10, &[1, 2])]);
    broken.segments.get_mut(&vni(10)).unwrap().intact = false;
    vec![
        Case {
            name: "nothing to do",
            observed: observed(&[("p1", 10, true)], &[(10, &[1])]),
            intent: intent(&[("p1", 10, true)], &[(10, &[1])]),
            deltas: vec![],
        },
        Case {
            name: "tunnel ends are cut before others are added",
            observed: observed(&[("p1", 10, true)], &[(10, &[1, 2])]),
            intent: intent(&[("p1", 10, true)], &[(10, &[2, 3])]),
            deltas: vec![cut(10, 1), add(10, 3)],
        },
        Case {
            name: "a repair says every tunnel end again",
            observed: broken,
            intent: intent(&[("p1", 10, true)], &[(10, &[1, 2])]),
            deltas: vec![ensure(10), add(10, 1), add(10, 2)],
        },
    ]
}

#[test]
fn the_way_is_ordered() {
    for case in moving_ports().into_iter().chain(changing_segments()) {
        let plan = plan(&case.observed, &case.intent);
        assert_eq!(plan.deltas, case.deltas, "{}", case.name);
        assert_eq!(plan.problems, Vec::<String>::new(), "{}", case.name);
    }
}

#[test]
fn a_foreign_bridge_loses_our_port() {
    let mut seen = observed(&[("p1", 0, true)], &[(10, &[])]);
    seen.ports.get_mut("p1").unwrap().place = PortPlace::Foreign("br-admin".into());
    let plan = plan(&seen, &intent(&[("p1", 10, true)], &[(10, &[])]));
    assert_eq!(plan.deltas, vec![isolate("p1"), enter("p1", 10)]);
}

#[test]
fn what_cannot_be_is_said_and_the_port_isolated() {
    let seen = observed(&[("p1", 10, true)], &[(10, &[])]);
    let plan = plan(
        &seen,
        &intent(&[("p1", 11, true), ("p7", 10, true)], &[(10, &[])]),
    );
    assert_eq!(plan.deltas, vec![isolate("p1")]);
    assert_eq!(
        plan.problems,
        vec![
            "no port p7 on this switch",
            "port p1 is for segment 11, which is unknown"
        ]
    );
}

#[test]
fn a_vni_has_24_bits() {
    for bad in [0, Vni::MAX + 1, u32::MAX] {
        assert!(Vni::new(bad).is_err());
    }
    assert_eq!(Vni::new(Vni::MAX).unwrap().get(), Vni::MAX);
}
