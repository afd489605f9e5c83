//! What must hold whatever happens, over random sequences of commands.

pub(crate) mod steps;

use self::steps::{MACHINES, Step, op_of, step};
use crate::world::*;
use control_state::life::MachineOrder;
use control_state::*;
use proptest::prelude::*;
use proto_types::IpNet;
use std::collections::BTreeSet;

fn check(world: &World) {
    let tables = &world.tables;
    let mut asns = BTreeSet::new();
    let mut owned = BTreeSet::new();
    for machine in tables.all::<Machine>() {
        let offered = query::allocatable_machines(tables, &text(PARTITION), &text(SIZE))
            .any(|offer| offer.id == machine.id);
        assert!(
            !(offered && machine.dirty),
            "offered although dirty: {machine:?}"
        );
        assert!(
            !(offered && machine.allocation.is_some()),
            "offered although allocated"
        );
        if machine.dirty {
            assert_ne!(life::machine_order(tables, machine.id), MachineOrder::Wait);
        }
        if let Some(allocation) = &machine.allocation {
            assert!(asns.insert(allocation.asn), "AS number twice");
            for network in &allocation.networks {
                for ip in &network.ips {
                    assert!(owned.insert((machine.id, *ip)), "address twice");
                    let key = IpKey {
                        namespace: network.namespace,
                        ip: *ip,
                    };
                    assert_eq!(tables.get::<Ip>(&key).unwrap().machine, Some(machine.id));
                }
            }
        } else {
            assert!(
                machine.segment != Segment::Tenant,
                "a port left behind: {machine:?}"
            );
            assert!(
                !matches!(
                    machine.phase,
                    Phase::Installing | Phase::BootOrder | Phase::Running
                ),
                "{machine:?}"
            );
        }
    }
    // Nothing leaks: whoever is bound is bound by an allocation.
    for ip in tables.all::<Ip>() {
        if let Some(machine) = ip.machine {
            assert!(owned.contains(&(machine, ip.ip)), "leaked {ip:?}");
        }
        let network = tables.get::<Network>(&ip.network).unwrap();
        assert!(network.prefix_of(ip.ip).is_some());
    }
    let children: Vec<&IpNet> = tables
        .all::<Network>()
        .filter(|network| network.kind.is_child())
        .flat_map(|network| &network.prefixes)
        .collect();
    for (at, net) in children.iter().enumerate() {
        for other in children.iter().skip(at + 1) {
            assert!(
                !net.contains(*other) && !other.contains(*net),
                "{net} overlaps {other}"
            );
        }
    }
    let vrfs: Vec<_> = tables
        .all::<Network>()
        .filter_map(|network| network.vrf)
        .collect();
    assert_eq!(
        vrfs.iter().collect::<BTreeSet<_>>().len(),
        vrfs.len(),
        "VRF twice"
    );
    for order in tables.all::<BmcOrder>() {
        let open = life::bmc_desired(tables, &order.partition)
            .iter()
            .any(|o| o.id == order.id);
        // A locked machine keeps its orders, and its BMC gets none of them.
        let machine = tables.get::<Machine>(&order.machine);
        let is_locked = machine.is_some_and(|m| m.condition.state == Availability::Locked);
        assert_eq!(open, order.state == OrderState::Open && !is_locked);
    }
}

/// An allocation is gone only when no switch reports a port of its machine in the tenant's
/// segment.
fn released_unseen(before: &Tables, after: &Tables) {
    for machine in before.all::<Machine>() {
        let now = after.get::<Machine>(&machine.id);
        let is_released = now.is_some_and(|now| now.allocation.is_none());
        let Some(allocation) = machine.allocation.as_ref().filter(|_| is_released) else {
            continue;
        };
        for link in &machine.links {
            let switch = after.get::<Switch>(&link.switch).unwrap();
            let seen = switch.ports[&link.port].observed.as_ref();
            let vni = seen.expect("a port of which nothing was seen").vni.get();
            assert_ne!(Some(vni), allocation.tenant_vrf(), "{machine:?}");
        }
    }
}

/// A port of a machine that somebody has is nobody else's, and a port has one machine.
fn keeps_ports(before: &Tables, after: &Tables) {
    let mut taken = BTreeSet::new();
    for machine in after.all::<Machine>() {
        for link in &machine.links {
            let port = (link.switch.clone(), link.port.clone());
            assert!(taken.insert(port), "two machines at one port: {link:?}");
        }
        let cards: BTreeSet<_> = machine.links.iter().map(|link| link.mac).collect();
        let claimed = machine.links.iter().filter(|link| !link.unclaimed);
        assert!(claimed.count() <= cards.len(), "{:?}", machine.links);
        let had = before.get::<Machine>(&machine.id);
        let had = had.filter(|had| had.allocation.is_some() && machine.allocation.is_some());
        for link in had.iter().flat_map(|had| &had.links) {
            assert!(machine.links.contains(link), "{link:?} was taken");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_shared_or_given_out_dirty(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        let mut replica = world.tables.clone();
        for number in 1..=MACHINES {
            let seen_at = world.now;
            let partition = text(PARTITION);
            world.ok(MachineSeen { id: id(number), partition, mac: Some(mac(number)), seen_at, to_disk: false, stated_at: None, relayed: None });
            world.hear("leaf1", &format!("swp{number}"), &[mac(number)]);
        }
        replica.clone_from(&world.tables);
        for (counter, step) in steps.iter().enumerate() {
            world.later(match step { Step::Tick(by_ms) => *by_ms, _ => 1000 });
            if matches!(step, Step::Switch) {
                world.switch_obeys();
                replica.clone_from(&world.tables);
            }
            for op in op_of(&world, step, counter as u128 + 1000) {
                let before = world.tables.clone();
                let command = Command::new(world.now, "random", op);
                let outcome = apply(&mut world.tables, &command);
                if outcome.result.is_err() {
                    prop_assert_eq!(&world.tables, &before);
                }
                prop_assert_eq!(&apply(&mut replica, &command), &outcome);
                released_unseen(&before, &world.tables);
                keeps_ports(&before, &world.tables);
            }
            check(&world);
        }
        prop_assert_eq!(replica.state_hash().unwrap(), world.tables.state_hash().unwrap());
        // The steps went past the world, whose fabric knows nothing of them.
        let mut world = World::of(world.tables, world.now);
        // Everything can be given back.
        for number in 1..=MACHINES {
            if world.tables.get::<Machine>(&id(number)).is_none() {
                // It was only seen, more than an hour ago.
                continue;
            }
            let state = Availability::Available;
            world.ok(SetMachineState { id: id(number), state, description: String::new() });
            if world.machine(number).allocation.is_some() {
                world.ok(FreeMachine { id: id(number), project: Some(id(1)) });
            }
        }
        let mut world = World::of(world.tables.clone(), world.now);
        loop {
            while !world.open_orders().is_empty() {
                let action = world.open_orders()[0];
                world.bmc(action, None);
            }
            world.switch_obeys();
            if world.open_orders().is_empty() {
                break;
            }
        }
        for machine in world.tables.all::<Machine>() {
            prop_assert!(machine.allocation.is_none());
        }
        prop_assert!(world.tables.all::<Ip>().all(|ip| ip.machine.is_none()));
        check(&world);
    }
}
