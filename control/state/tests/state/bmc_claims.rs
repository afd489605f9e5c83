//! Several BMCs that claim one machine: none of them gets its orders until an operator decides.

use control_state::*;

use crate::world::*;

const FIRST: &str = "10.0.0.1:623";
const SECOND: &str = "10.0.0.2:623";
const MINUTE: u64 = 60_000;

fn reading(world: &World, address: &str) -> BmcReading {
    BmcReading {
        machine: Some(id(1)),
        address: address.into(),
        mac: "02:00:00:00:09:01".into(),
        interface: "ipmi".into(),
        power_state: "on".into(),
        observed_at: world.now,
        ..BmcReading::default()
    }
}

fn report(world: &mut World, address: &str) {
    let reading = reading(world, address);
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![reading],
    });
}

fn confirm(address: &str) -> ConfirmBmc {
    ConfirmBmc {
        machine: id(1),
        address: address.into(),
    }
}

fn order(action: BmcAction) -> OrderBmc {
    OrderBmc {
        user: None,
        machine: id(1),
        project: None,
        action,
        description: String::new(),
    }
}

fn believed(world: &World) -> String {
    world.machine(1).bmc.as_ref().unwrap().address.clone()
}

#[test]
fn two_bmcs_that_claim_one_machine_get_no_orders() {
    let mut world = World::new();
    world.running(1, 1);
    report(&mut world, FIRST);
    // Another port of the same BMC is no other BMC.
    report(&mut world, "10.0.0.1:443");
    world.ok(order(BmcAction::LedOn));
    assert_eq!(world.open_orders(), [BmcAction::LedOn]);
    let rogue = BmcReading {
        power_state: "off".into(),
        bios_version: "evil".into(),
        ..reading(&world, SECOND)
    };
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![rogue],
    });
    assert_eq!(world.open_orders(), [], "both are held");
    assert_eq!(believed(&world), "10.0.0.1:443");
    let machine = world.machine(1);
    assert_eq!(machine.bmc.as_ref().unwrap().power_state, "on");
    assert_ne!(machine.bios.version, "evil");
    assert_eq!(
        world.refused(order(BmcAction::PowerOff)),
        ErrorCode::BmcContested
    );
    // The way back of a freed machine waits as well, and says why.
    world.free(1);
    assert_eq!(world.open_orders(), []);
    for _ in 0..STEP_ATTEMPTS_MAX {
        world.tick(2 * MINUTE);
    }
    let machine = world.machine(1);
    assert_eq!(machine.phase, Phase::Held(HoldCause::Bmc));
    assert!(
        machine.reason.contains("10.0.0.1:443 and 10.0.0.2:623"),
        "{}",
        machine.reason
    );
}

#[test]
fn a_claim_that_moved_is_believed_when_an_operator_says_so() {
    let mut world = World::new();
    world.waiting(1);
    report(&mut world, FIRST);
    world.later(MINUTE);
    // The BMC tells the same MAC address, which it can make up as well.
    report(&mut world, SECOND);
    assert_eq!(believed(&world), FIRST);
    let refused = world.refused(order(BmcAction::LedOn));
    assert_eq!(refused, ErrorCode::BmcContested);
    world.ok(confirm(SECOND));
    assert_eq!(believed(&world), SECOND);
    world.ok(order(BmcAction::LedOn));
    assert_eq!(world.open_orders(), [BmcAction::LedOn]);
}

#[test]
fn an_operator_decides_between_claims() {
    for (chosen, other) in [(FIRST, SECOND), (SECOND, FIRST)] {
        let mut world = World::new();
        world.waiting(1);
        report(&mut world, FIRST);
        world.ok(order(BmcAction::LedOn));
        report(&mut world, SECOND);
        assert_eq!(world.open_orders(), []);
        assert_eq!(world.refused(confirm("10.0.0.3")), ErrorCode::NotFound);
        // With or without the port.
        world.ok(confirm(chosen.trim_end_matches(":623")));
        assert_eq!(believed(&world), chosen);
        assert_eq!(world.open_orders(), [BmcAction::LedOn]);
        // The other goes on to claim it, and does not count.
        world.later(MINUTE);
        report(&mut world, other);
        assert_eq!(believed(&world), chosen);
        assert!(!world.machine(1).is_bmc_contested());
    }
}

#[test]
fn a_claim_that_ends_is_forgotten() {
    let mut world = World::new();
    world.waiting(1);
    report(&mut world, FIRST);
    report(&mut world, SECOND);
    let again = reading(&world, SECOND);
    assert!(!life::bmc_reading_matters(&world.tables, &again, world.now));
    world.later(31 * MINUTE);
    let of_first = reading(&world, FIRST);
    assert!(life::bmc_reading_matters(&world.tables, &again, world.now));
    assert!(life::bmc_reading_matters(
        &world.tables,
        &of_first,
        world.now
    ));
    report(&mut world, FIRST);
    assert!(world.machine(1).bmc_claims.is_empty());
    for number in 2..20 {
        report(&mut world, &format!("10.0.1.{number}:623"));
    }
    assert!(world.machine(1).bmc_claims.len() < 10, "they are bounded");
}
