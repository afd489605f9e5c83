//! Machines that join only with what their BMC holds.

use control_state::life::{NONCE_LIFE_MS, NONCE_SETTLE_MS};
use control_state::*;

use crate::world::*;

const MINUTE: u64 = 60_000;

/// A cluster with a partition that demands a nonce, and machine 1 in it.
fn demanding() -> World {
    let mut world = World::new();
    world.ok(demand("true"));
    world.seen(1);
    world
}

fn demand(value: &str) -> UpdatePartition {
    let update = [(label::REQUIRE_BMC_NONCE.to_owned(), value.to_owned())];
    relabel(LabelsUpdate::Patch {
        update: update.into(),
        remove: Vec::new(),
    })
}

/// Pixie gets a ticket for a machine.
fn ticket(world: &mut World, number: u128, machine: u128) {
    let expires_at = world.now.plus_ms(5 * MINUTE);
    world.ok(IssueBootTicket {
        id: id(number),
        machine: id(machine),
        mac: mac(machine),
        partition: text(PARTITION),
        secret: sha(1),
        expires_at,
    });
}

fn redeem(number: u128, machine: u128, nonce: Option<u8>) -> RedeemBootTicket {
    RedeemBootTicket {
        id: id(number),
        secret: sha(1),
        machine: id(machine),
        mac: mac(machine),
        nonce: nonce.map(sha),
    }
}

/// The BMC agent's word on the first order of a machine that is open.
fn end(world: &World, machine: u128, nonce: Option<u8>, error: Option<&str>) -> BmcOrderDone {
    let open = life::bmc_desired(&world.tables, &text(PARTITION));
    let order = open.iter().find(|order| order.machine == id(machine));
    let order = order.expect("an order");
    assert_eq!(order.action, BmcAction::SetNonce);
    BmcOrderDone {
        id: order.id,
        partition: text(PARTITION),
        error: error.map(str::to_owned),
        power_state: None,
        nonce: nonce.map(sha),
    }
}

fn set(world: &mut World, machine: u128, nonce: u8) {
    let done = end(world, machine, Some(nonce), None);
    world.ok(done);
}

#[test]
fn a_machine_joins_once_with_what_its_bmc_holds() {
    let mut world = demanding();
    ticket(&mut world, 1, 1);
    assert_eq!(world.open_orders(), [BmcAction::SetNonce]);
    let early = redeem(1, 1, Some(7));
    assert_eq!(world.refused(early), ErrorCode::NonceAwaited);
    // It boots again before the BMC answered: one order is enough.
    ticket(&mut world, 2, 1);
    assert_eq!(world.open_orders(), [BmcAction::SetNonce]);

    set(&mut world, 1, 7);
    assert_eq!(world.refused(redeem(2, 1, None)), ErrorCode::NonceAwaited);
    world.later(NONCE_SETTLE_MS);
    assert_eq!(world.refused(redeem(2, 1, None)), ErrorCode::NonceRefused);
    let wrong = redeem(2, 1, Some(8));
    assert_eq!(world.refused(wrong), ErrorCode::NonceRefused);
    // Nothing was used up by that, not even by a boot more.
    ticket(&mut world, 3, 1);
    assert!(world.open_orders().is_empty());
    world.ok(redeem(3, 1, Some(7)));

    // The next boot needs another one, and the old one is nothing worth.
    ticket(&mut world, 4, 1);
    assert_eq!(world.open_orders(), [BmcAction::SetNonce]);
    set(&mut world, 1, 9);
    world.later(NONCE_SETTLE_MS);
    let old = redeem(4, 1, Some(7));
    assert_eq!(world.refused(old), ErrorCode::NonceRefused);
    world.ok(redeem(4, 1, Some(9)));
}

#[test]
fn a_nonce_is_good_for_its_machine_only() {
    let mut world = demanding();
    world.seen(2);
    for (machine, nonce) in [(1, 11), (2, 12)] {
        ticket(&mut world, machine, machine);
        set(&mut world, machine, nonce);
    }
    world.later(NONCE_SETTLE_MS);
    let foreign = redeem(2, 2, Some(11));
    assert_eq!(world.refused(foreign), ErrorCode::NonceRefused);
    world.ok(redeem(2, 2, Some(12)));
    world.ok(redeem(1, 1, Some(11)));
}

#[test]
fn a_nonce_lasts_as_long_as_the_ticket_or_is_replaced() {
    let mut world = demanding();
    ticket(&mut world, 1, 1);
    set(&mut world, 1, 7);
    world.later(NONCE_LIFE_MS - 5 * MINUTE - 1);
    ticket(&mut world, 2, 1);
    assert!(world.open_orders().is_empty(), "it lasts");
    world.later(1);
    ticket(&mut world, 3, 1);
    assert_eq!(world.open_orders(), [BmcAction::SetNonce]);
    let old = redeem(3, 1, Some(7));
    assert_eq!(world.refused(old), ErrorCode::NonceAwaited, "another comes");
    set(&mut world, 1, 8);
    world.ok(redeem(3, 1, Some(8)));
}

#[test]
fn a_bmc_that_takes_no_nonce_says_so_to_the_admin() {
    let mut world = demanding();
    let error = |world: &World| world.log(1).last_error_event.clone().unwrap().message;
    ticket(&mut world, 1, 1);
    world.ok(end(&world, 1, None, Some("BMC 10.0.0.1 has no asset tag")));
    let told = error(&world);
    assert!(told.contains("set-nonce failed: BMC 10.0.0.1"), "{told}");
    let shown = redeem(1, 1, Some(7));
    assert_eq!(world.refused(shown.clone()), ErrorCode::NonceRefused);
    // An agent that says "done" and not what it wrote is of no use.
    ticket(&mut world, 2, 1);
    world.ok(end(&world, 1, None, None));
    assert!(error(&world).contains("did not tell"), "{}", error(&world));
    // One that says nothing neither; the next boot is another attempt.
    ticket(&mut world, 3, 1);
    world.tick(ORDER_DEADLINE_MS);
    assert!(error(&world).contains("in time"), "{}", error(&world));
    ticket(&mut world, 4, 1);
    set(&mut world, 1, 7);
    world.ok(redeem(4, 1, Some(7)));
}

#[test]
fn orders_for_nonces_are_nobodys_but_the_machines() {
    let mut world = demanding();
    ticket(&mut world, 1, 1);
    let open = life::bmc_desired(&world.tables, &text(PARTITION))[0].clone();
    assert_eq!(open.purpose, OrderPurpose::Join);
    let cancel = DeleteBmcOrder { id: open.id };
    assert_eq!(world.refused(cancel.clone()), ErrorCode::StillInUse);
    let power_on = OrderBmc {
        user: None,
        machine: id(1),
        project: None,
        action: BmcAction::PowerOn,
        description: String::new(),
    };
    for _ in 0..ORDERS_OPEN_MAX {
        world.ok(power_on.clone());
    }
    assert_eq!(world.refused(power_on), ErrorCode::TooMany);
    set(&mut world, 1, 7);
    // Who forgets the order has another one made.
    world.ok(cancel);
    ticket(&mut world, 2, 1);
    let open = world.open_orders();
    assert_eq!(open.last(), Some(&BmcAction::SetNonce));
}

#[test]
fn the_way_back_does_not_wait_for_a_nonce() {
    let mut world = demanding();
    world.running(1, 1);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
    let expires_at = world.now.plus_ms(5 * MINUTE);
    let own = world.machine(1).hardware.nics[0].mac;
    world.ok(IssueBootTicket {
        id: id(9),
        machine: id(1),
        mac: own,
        partition: text(PARTITION),
        secret: sha(1),
        expires_at,
    });
    let orders = [BmcAction::BootPxe, BmcAction::PowerOn, BmcAction::SetNonce];
    assert_eq!(world.open_orders(), orders);
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    assert_eq!(world.phase(1), Phase::ReclaimRegister);
    world.ok(end(&world, 1, None, Some("no asset tag")));
    assert_eq!(world.phase(1), Phase::ReclaimRegister);
}

#[test]
fn the_demand_is_yes_or_no() {
    let mut world = demanding();
    for text in ["yes", "True", ""] {
        assert_eq!(world.refused(demand(text)), ErrorCode::InvalidField);
    }
    world.ok(demand("false"));
    ticket(&mut world, 1, 1);
    assert!(world.open_orders().is_empty());
    world.ok(redeem(1, 1, None));
    // Demanded after the ticket was made: the machine has nothing yet, and asks again.
    ticket(&mut world, 2, 1);
    world.ok(demand("true"));
    assert_eq!(world.refused(redeem(2, 1, None)), ErrorCode::NonceAwaited);
}

#[test]
fn who_joined_with_a_nonce_is_known_by_that() {
    let mut world = demanding();
    ticket(&mut world, 1, 1);
    set(&mut world, 1, 7);
    world.ok(redeem(1, 1, Some(7)));
    let issue = IssueCertificate {
        certificate: Certificate {
            serial: "aa".into(),
            identity: "spiffe://test/machine/1".into(),
            issued_at: world.now,
            not_after: world.now.plus_ms(NONCE_LIFE_MS),
            machine: Some(id(1)),
            allocation: None,
            key: Some(sha(3)),
            authority: 1,
            revoked_at: None,
            revoked_reason: String::new(),
        },
        cause: Cause::Join(JoinedBy::BmcNonce(id(1))),
    };
    let made = world.ok(issue).identity().unwrap();
    assert_eq!(made.joined_by, JoinedBy::BmcNonce(id(1)));
}
