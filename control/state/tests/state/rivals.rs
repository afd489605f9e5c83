//! Machines that claim the same ports and cards: a change judges few of them again, and the outcome
//! is as if it had judged all.

use std::collections::BTreeMap;

use crate::cables::{blind, claiming};
use crate::world::*;
use control_state::*;
use proptest::prelude::*;
use proto_types::MachineId;

/// Rivals in the property test. With four, a port may have two rivals beside the one that changes
/// and the one that is judged.
const RIVALS: u128 = 4;
const PORTS: [&str; 3] = ["swp1", "swp2", "swp3"];

#[derive(Debug, Clone)]
enum Step {
    /// A machine registers with a claim on ports, and perhaps the card of another one.
    Claim(u128, Vec<usize>, u128),
    /// The leaf hears the cards of machines at a port; the flag puts the machine's name beside.
    Hear(usize, Vec<u128>, bool),
    /// An operator locks the first machine, or makes it available. Of two locked ones the last
    /// judged has the port, so that the outcome depends on the order.
    Lock(bool),
    /// A machine is deleted, after a silence.
    Delete(u128),
}

fn step() -> impl Strategy<Value = Step> {
    let machine = 1..=RIVALS;
    let ports = prop::collection::vec(0..PORTS.len(), 0..3);
    let heard = prop::collection::vec(machine.clone(), 0..3);
    prop_oneof![
        4 => (machine.clone(), ports, machine.clone()).prop_map(|(m, p, c)| Step::Claim(m, p, c)),
        3 => (0..PORTS.len(), heard, any::<bool>()).prop_map(|(p, m, n)| Step::Hear(p, m, n)),
        2 => any::<bool>().prop_map(Step::Lock),
        1 => machine.prop_map(Step::Delete),
    ]
}

/// Takes a step. Refused commands change nothing, which is part of the test.
fn take(world: &mut World, step: &Step) {
    world.later(1_000);
    match step {
        Step::Claim(machine, ports, card) => {
            let claims: Vec<_> = ports.iter().map(|port| ("leaf1", PORTS[*port])).collect();
            let mut registration = claiming(*machine, &claims);
            if let Some(nic) = registration.hardware.nics.first_mut() {
                nic.mac = mac(*card);
            }
            world.seen(*machine);
            let _ = world.apply(registration);
        }
        Step::Hear(port, machines, is_named) => {
            let neighbour = |machine: &u128| Neighbour {
                chassis_id: mac(*machine).to_string(),
                port_id: mac(*machine).to_string(),
                system_name: match is_named {
                    true => id::<MachineId>(*machine).to_string(),
                    false => String::new(),
                },
                ..Neighbour::default()
            };
            let heard = machines.iter().map(neighbour).collect();
            if let Some(report) = world.hearing("leaf1", PORTS[*port], heard) {
                world.ok(report);
            }
        }
        Step::Lock(is_locked) => {
            let (state, description) = match is_locked {
                true => (Availability::Locked, "it is not there".to_owned()),
                false => (Availability::Available, String::new()),
            };
            let id = id(1);
            let _ = world.apply(SetMachineState {
                id,
                state,
                description,
            });
        }
        Step::Delete(machine) => {
            world.tick(DEAD_AFTER_MS);
            let _ = world.apply(DeleteMachine { id: id(*machine) });
        }
    }
}

/// The cables of every machine.
fn cables(world: &World) -> BTreeMap<MachineId, Vec<PortLink>> {
    let machines = world.tables.all::<Machine>();
    machines
        .map(|machine| (machine.id, machine.links.clone()))
        .collect()
}

/// A leaf that registers again has every claim on it judged.
fn judge_all(world: &World, hears: bool) -> World {
    let mut judged = world.clone();
    judged.ok(RegisterSwitch {
        hears,
        ..leaf("leaf1", "rack-1")
    });
    judged
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_change_leaves_nothing_to_judge(
        hears in any::<bool>(),
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let mut world = World::new();
        if !hears {
            blind(&mut world);
        }
        for step in &steps {
            take(&mut world, step);
            let judged = cables(&judge_all(&world, hears));
            prop_assert_eq!(cables(&world), judged, "after {:?}", step);
        }
    }
}
