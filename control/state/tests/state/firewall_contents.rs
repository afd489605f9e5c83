//! The bound of contents in force while one firewall replaces another one.

use control_state::*;
use proto_firewall::RuleOwner;

use crate::firewall_guests::{LARGE, policies};
use crate::firewall_replace::{applied, healthy, set, step};
use crate::world::*;
use ReplacementStep::{Prepare, TakeOver, Undo};
use RuleOwner::{Operator, Tenant};

fn private() -> RuleSetKey {
    RuleSetKey {
        target: RuleTarget::Network(text("private")),
        owner: Operator,
    }
}

/// A write of the operator of so many policies of a KiB.
fn long(set: RuleSetKey, count: usize) -> SetFirewallRules {
    SetFirewallRules {
        set,
        project: None,
        content: policies(count),
        comment: String::new(),
        expected: None,
    }
}

fn operators(firewall: u128, count: usize) -> SetFirewallRules {
    long(set(firewall, Operator), count)
}

/// Three firewalls, of which the first has more than 1.5 of the 4 MiB that the operator's rules of a
/// project may have, and their network as much.
fn world() -> World {
    let mut world = healthy(3);
    world.ok(operators(1, LARGE));
    world.ok(long(private(), LARGE));
    world
}

#[test]
fn a_firewall_and_its_replacement_count_once() {
    let mut world = world();
    let third = |world: &mut World| world.refused(operators(3, LARGE));
    assert_eq!(third(&mut world), ErrorCode::TooMany);
    world.ok(step(1, 2, Prepare));
    let mut both = applied(2, [(Operator, 1), (Tenant, 0)]);
    both.applied_sets.insert(private().to_string(), 1);
    world.ok(both);
    world.ok(step(1, 2, TakeOver));
    // Longer ones are written for either, which each time is for both.
    world.ok(operators(1, LARGE + 1));
    world.ok(operators(2, LARGE + 2));
    assert_eq!(third(&mut world), ErrorCode::TooMany);
    world.ok(operators(3, 100));
    // The copy that is left over leaves the operator's room as it was.
    world.ok(step(1, 2, Undo));
    world.ok(operators(3, 400));
    assert_eq!(third(&mut world), ErrorCode::TooMany);
}

/// Two sets that counted once may be too much when the replacement is taken back.
#[test]
fn contents_may_become_shorter_above_the_bound() {
    let mut world = world();
    world.ok(step(1, 2, Prepare));
    world.ok(operators(2, LARGE + 1));
    world.ok(step(1, 2, Undo));
    assert_eq!(world.refused(operators(3, 1)), ErrorCode::TooMany);
    assert_eq!(world.refused(operators(1, LARGE + 1)), ErrorCode::TooMany);
    world.ok(operators(1, LARGE - 1));
    // There is room again once one of both is much shorter.
    world.ok(operators(2, LARGE / 4));
    world.ok(operators(3, 1));
}
