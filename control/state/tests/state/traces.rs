//! What follows from a call that is traced.

use control_state::*;

use crate::world::*;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn traced(world: &mut World, op: impl Into<Op>, trace: &str) {
    let command = Command::new(world.now, "tester", op).traced(trace.to_owned());
    apply(&mut world.tables, &command).result.unwrap();
}

fn newest_order(world: &World) -> Option<String> {
    let orders = world.tables.all::<BmcOrder>();
    orders.max_by_key(|order| order.sequence)?.trace.clone()
}

fn of_machine(world: &World) -> Option<String> {
    let machine = world.tables.get::<Machine>(&id(1))?;
    machine.trace.clone()
}

fn power_on() -> OrderBmc {
    OrderBmc {
        user: None,
        machine: id(1),
        project: None,
        action: BmcAction::PowerOn,
        description: String::new(),
    }
}

#[test]
fn an_order_has_the_trace_of_its_call() {
    let mut world = World::new();
    world.waiting(1);
    traced(&mut world, power_on(), TRACE);
    assert_eq!(newest_order(&world).as_deref(), Some(TRACE));
    // The machine goes nowhere for it.
    assert_eq!(of_machine(&world), None);
    traced(&mut world, power_on(), "no trace");
    assert_eq!(newest_order(&world), None);
}

#[test]
fn a_machine_has_the_trace_of_the_call_until_it_is_there() {
    let mut world = World::new();
    world.waiting(1);
    traced(&mut world, allocation_of(7), TRACE);
    let port = |world: &World| life::port_traces(&world.tables, &text("leaf1"));
    assert_eq!(of_machine(&world).as_deref(), Some(TRACE));
    assert_eq!(port(&world)["swp1"], TRACE);
    world.install(1, 7);
    assert_eq!(newest_order(&world).as_deref(), Some(TRACE));
    world.phone_home(1);
    assert_eq!((of_machine(&world), port(&world).len()), (None, 0));
    let other = TRACE.replace("0af7", "1bf7");
    traced(
        &mut world,
        FreeMachine {
            id: id(1),
            project: Some(id(1)),
        },
        &other,
    );
    assert_eq!(of_machine(&world), Some(other.clone()));
    assert_eq!(newest_order(&world), Some(other));
}
