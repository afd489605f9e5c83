//! Invariants of every state between two steps.

use std::collections::BTreeSet;

use agents_nos::model::{Bgp, PortName};
use agents_nos::{Membership, SwitchModel};

/// The violations of a state on its way from an observed to a fitted state, in words.
pub(crate) fn violations(
    state: &SwitchModel,
    observed: &SwitchModel,
    target: &SwitchModel,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    places(state, target, &mut found);
    neighbours(state, &mut found);
    numbers(state, &mut found);
    mixed_tenants(state, observed, target, &mut found);
    found
}

fn places(state: &SwitchModel, target: &SwitchModel, found: &mut BTreeSet<String>) {
    for (name, port) in &state.ports {
        match &port.membership {
            Membership::Segment { vni, .. } if !state.segments.contains_key(vni) => {
                found.insert(format!("{name} is in segment {vni}, which does not exist"));
            }
            Membership::Routed(vrf) => match state.vrfs.get(vrf) {
                None => {
                    found.insert(format!("{name} is in {vrf}, which does not exist"));
                }
                Some(seen) if !seen.has_unreachable_default || !state.is_l3mdev_first => {
                    found.insert(format!("{name} reaches the underlay through {vrf}"));
                }
                Some(_) => {}
            },
            Membership::Underlay if port.admin_up => {
                let wanted = target.ports.get(name).map(|port| &port.membership);
                if wanted != Some(&Membership::Underlay) {
                    found.insert(format!("{name} is up in the default VRF"));
                }
            }
            _ => {}
        }
    }
    for (vni, segment) in &state.segments {
        if let Some(gateway) = &segment.gateway
            && !state.vrfs.contains_key(gateway.vrf())
        {
            found.insert(format!("the gateway of {vni} is in no VRF"));
        }
    }
}

fn neighbours(state: &SwitchModel, found: &mut BTreeSet<String>) {
    for (vrf, of) in state.bgp.iter().flat_map(Bgp::instances) {
        if vrf.is_some_and(|vrf| !state.vrfs.contains_key(vrf)) {
            found.insert(format!("BGP of {vrf:?} is in no VRF"));
        }
        for (port, neighbour) in of {
            for name in [&neighbour.import, &neighbour.export] {
                let name = name.as_ref();
                let map = name.and_then(|name| state.policies.route_maps.get(name));
                if !map.is_some_and(|map| state.policies.has_lists_of(map)) {
                    found.insert(format!("neighbour {port} in {vrf:?} lacks filter {name:?}"));
                }
            }
            if !state.is_bound(vrf, port) {
                found.insert(format!("the port of {port} in {vrf:?} is elsewhere"));
            }
        }
    }
}

fn numbers(state: &SwitchModel, found: &mut BTreeSet<String>) {
    let mut vnis: Vec<_> = state.segments.keys().copied().collect();
    vnis.extend(state.vrfs.values().filter_map(|vrf| vrf.l3_vni));
    let vlans: Vec<_> = state.segments.values().filter_map(|s| s.vlan).collect();
    let tables: Vec<_> = state.vrfs.values().map(|vrf| vrf.table).collect();
    let repeats = |mut numbers: Vec<u32>| {
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len() < all
    };
    for (kind, numbers) in [
        ("VNI", vnis.iter().map(|n| n.get()).collect::<Vec<u32>>()),
        ("VLAN", vlans.iter().map(|n| n.get().into()).collect()),
        ("table", tables.iter().map(|n| n.get()).collect()),
    ] {
        if repeats(numbers) {
            found.insert(format!("two objects have one {kind}"));
        }
    }
}

/// A port that has to go and a port that has come, in one place.
fn mixed_tenants(
    state: &SwitchModel,
    observed: &SwitchModel,
    target: &SwitchModel,
    found: &mut BTreeSet<String>,
) {
    // Privacy is no place of its own.
    let place = |of: &SwitchModel, name: &PortName| {
        let port = of.ports.get(name)?;
        match &port.membership {
            Membership::Quarantine | Membership::Underlay => None,
            Membership::Segment { vni, .. } => Some(format!("segment {vni}")),
            other => Some(format!("{other:?}")),
        }
    };
    let has_to_go = |name: &&PortName| place(state, name) != place(target, name);
    let has_come = |name: &&PortName| place(state, name) != place(observed, name);
    for old in state.ports.keys().filter(has_to_go) {
        for new in state.ports.keys().filter(has_come) {
            if place(state, old).is_some() && place(state, old) == place(state, new) {
                found.insert(format!("{old} and {new} are in one place"));
            }
        }
    }
}
