//! Changes by hand, and the part of them that the policy holds.

use agents_nos::{
    Capability, Drift, Membership, Step, SwitchModel, SwitchObject, find_drift, plan, steps_to_hold,
};

use crate::fixture::{Build, list_id, port, rule, segment_place, short, tenant, vni, vrf};

const ALL: &[Capability] = Capability::ALL;

fn desired() -> Build {
    tenant()
        .port("p2", segment_place(10), true)
        .segment(10, &[1])
        .gateway(10, "Vrf27", "10.0.0.1/8")
}

/// The drift in words: object, seen, desired; `!` if it is unsafe.
fn told(observed: &SwitchModel, desired: &SwitchModel, left: &[Step]) -> Vec<String> {
    let drift = find_drift(observed, desired, left, ALL);
    let told = drift.iter().map(|found| {
        let Drift {
            object,
            seen,
            desired,
            is_unsafe,
        } = found;
        let mark = if *is_unsafe { "!" } else { "" };
        format!("{mark}{object}: {seen}; {desired}")
    });
    told.collect()
}

struct Edit {
    by_hand: fn(&mut SwitchModel),
    told: &'static str,
    /// Steps with `drift = "report"`.
    healed: &'static [&'static str],
}

fn edits() -> Vec<Edit> {
    vec![
        Edit {
            by_hand: |s| s.ports.get_mut("p2").unwrap().membership = Membership::Underlay,
            told: "!port p2: without a place, up; in segment 10, up",
            healed: &["p2 leaves", "p2 enters 10"],
        },
        Edit {
            by_hand: |s| s.ports.get_mut("p2").unwrap().membership = Membership::Quarantine,
            told: "port p2: quarantined, up; in segment 10, up",
            healed: &[],
        },
        Edit {
            by_hand: |s| s.ports.get_mut("p2").unwrap().admin_up = false,
            told: "port p2: in segment 10, down; in segment 10, up",
            healed: &[],
        },
        Edit {
            by_hand: |s| {
                let p2 = s.ports.get_mut("p2").unwrap();
                p2.membership = Membership::Segment {
                    vni: vni(10),
                    is_private: true,
                };
            },
            told: "!port p2: in segment 10, private, up; in segment 10, up",
            healed: &["p2 enters 10"],
        },
        Edit {
            by_hand: |s| {
                let segment = s.segments.get_mut(&vni(10)).unwrap();
                segment.remotes = [[10, 0, 0, 9].into()].into();
            },
            told: "!segment 10: MTU 1500, floods to 10.0.0.9; MTU 1500, floods to 10.0.0.1",
            healed: &["10 not to 10.0.0.9", "10 to 10.0.0.1"],
        },
        Edit {
            by_hand: |s| s.segments.get_mut(&vni(10)).unwrap().remotes.clear(),
            told: "segment 10: MTU 1500; MTU 1500, floods to 10.0.0.1",
            healed: &[],
        },
        Edit {
            by_hand: |s| {
                s.segments.insert(vni(99), s.segments[&vni(10)].clone());
                s.segments.get_mut(&vni(99)).unwrap().gateway = None;
            },
            told: "segment 99: MTU 1500, floods to 10.0.0.1; missing",
            healed: &[],
        },
        Edit {
            by_hand: |s| {
                let of = &mut s.vrfs.get_mut(&vrf("Vrf27")).unwrap();
                of.has_unreachable_default = false;
            },
            told: "!VRF Vrf27: table 1027, VNI 27, open to the underlay; table 1027, VNI 27",
            healed: &["make Vrf27"],
        },
        Edit {
            by_hand: |s| {
                let lists = &mut s.policies.prefix_lists;
                let list = lists.get_mut(&list_id("MM-list", false)).unwrap();
                list.rules.insert(rule("192.0.2.0/24"));
            },
            told: "!IPv4 prefix list MM-list: permits 10.0.0.0/8 le 32, 192.0.2.0/24 le 32; \
                   permits 10.0.0.0/8 le 32",
            healed: &["MM-list forgets 192.0.2.0/24"],
        },
        Edit {
            by_hand: |s| {
                let of = s.bgp.as_mut().unwrap().vrfs.get_mut(&vrf("Vrf27")).unwrap();
                of.get_mut(&port("p1")).unwrap().import = None;
            },
            told: "!neighbour p1 in VRF Vrf27: any AS, in unfiltered, out MM-out; any AS, in \
                   MM-in, out MM-out",
            healed: &["neighbour p1 in Vrf27"],
        },
        Edit {
            by_hand: |s| {
                let of = s.bgp.as_mut().unwrap().vrfs.get_mut(&vrf("Vrf27")).unwrap();
                of.clear();
            },
            told: "neighbour p1 in VRF Vrf27: missing; any AS, in MM-in, out MM-out",
            healed: &[],
        },
    ]
}

#[test]
fn an_edit_is_told_and_healed_if_tenants_could_meet() {
    let desired = desired().0;
    assert_eq!(told(&desired, &desired, &[]), [""; 0]);
    for edit in edits() {
        let mut seen = desired.clone();
        (edit.by_hand)(&mut seen);
        assert_eq!(told(&seen, &desired, &[]), [edit.told]);
        let all = plan(&seen, &desired, ALL).steps;
        assert_eq!(
            told(&seen, &desired, &all),
            [""; 0],
            "left behind is no drift"
        );
        let held = steps_to_hold(&seen, &desired, |_| true, ALL);
        let healed = all.iter().filter(|step| !held.contains(step));
        let healed: Vec<String> = healed.map(short).collect();
        assert_eq!(healed, edit.healed, "{}", edit.told);
        assert_eq!(
            steps_to_hold(&seen, &desired, |_| false, ALL),
            [],
            "policy heal"
        );
    }
}

/// The bridge of a segment is deleted by hand: its port is unsafe, and needs the segment back.
#[test]
fn a_held_object_is_healed_if_another_needs_it() {
    let desired = Build::default()
        .port("p1", segment_place(10), true)
        .segment(10, &[1])
        .0;
    let mut seen = desired.clone();
    seen.segments.clear();
    seen.ports.get_mut("p1").unwrap().membership = Membership::Underlay;
    let held = steps_to_hold(&seen, &desired, |_| true, ALL);
    assert_eq!(held, []);

    // Control puts a port into a segment that somebody deleted.
    seen.ports.get_mut("p1").unwrap().membership = Membership::Quarantine;
    let is_segment = |object: &SwitchObject| *object != SwitchObject::Port(port("p1"));
    let held = steps_to_hold(&seen, &desired, is_segment, ALL);
    assert_eq!(held, []);
}
