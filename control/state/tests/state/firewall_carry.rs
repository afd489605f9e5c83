//! Rules that are written for a firewall, or for the one that replaces it, before both are one.

use control_state::query::{FirewallFault, firewall_faults};
use control_state::*;
use proto_firewall::{RateLimit, RuleContent, RuleOwner};

use crate::firewall_replace::{applied, healthy, named, policies, set, step, write};
use crate::firewall_standby::report;
use crate::world::*;
use ReplacementStep::{Prepare, TakeOver, Undo};
use RuleOwner::{Operator, Tenant};

/// Number of the revision of a firewall's set that is in force. 0 means that there is none.
fn number(world: &World, firewall: u128, owner: RuleOwner) -> u64 {
    let row = world.tables.get::<FirewallRuleSet>(&set(firewall, owner));
    row.map_or(0, |row| row.current.number)
}

fn remove(world: &mut World, firewall: u128, owner: RuleOwner) {
    world.ok(DeleteFirewallRules {
        set: set(firewall, owner),
        project: None,
        expected: None,
    });
}

/// The faults of a firewall that lacks rules of the other one.
fn lacks(world: &World, firewall: u128) -> Vec<FirewallFault> {
    let mut faults = firewall_faults(&world.tables, id(firewall));
    faults.retain(|fault| matches!(fault, FirewallFault::RulesDiffer { .. }));
    faults
}

/// Firewall 2 has the place of firewall 1, and these revisions of its own sets in its kernel.
fn taken_over(world: &mut World, revisions: [(RuleOwner, u64); 2]) {
    world.ok(step(1, 2, Prepare));
    world.ok(applied(2, revisions));
    world.ok(step(1, 2, TakeOver));
}

/// A limit for a network, with which the rest of the rules is refused for firewalls that are not in it.
fn limited(firewall: u128, network: &str) -> SetFirewallRules {
    SetFirewallRules {
        set: set(firewall, Operator),
        project: None,
        content: RuleContent {
            rate_limits: vec![RateLimit {
                network_id: network.into(),
                rate: 7,
            }],
            ..RuleContent::default()
        },
        comment: String::new(),
        expected: None,
    }
}

#[test]
fn rules_that_are_written_during_a_replacement_reach_both() {
    let mut world = healthy(2);
    write(&mut world, 1, Operator, "no-smtp");
    world.ok(step(1, 2, Prepare));
    // The emergency rule of the operator, and the first rules of the project.
    write(&mut world, 1, Operator, "emergency");
    write(&mut world, 1, Tenant, "web");
    assert_eq!(policies(&world, 2, Operator), ["emergency"]);
    assert_eq!(policies(&world, 2, Tenant), ["web"]);
    // The place is not taken before the kernel has them.
    world.ok(applied(2, [(Operator, 1), (Tenant, 1)]));
    assert_eq!(
        world.refused(step(1, 2, TakeOver)),
        ErrorCode::FirewallNotReplaced
    );
    world.ok(applied(2, [(Operator, 2), (Tenant, 1)]));
    world.ok(step(1, 2, TakeOver));

    // Until the old one is gone what is written for it holds for the new one as well.
    write(&mut world, 1, Operator, "late");
    assert_eq!(policies(&world, 2, Operator), ["late"]);
    world.ok(RollBackFirewallRules {
        set: set(1, Operator),
        project: None,
        number: 1,
        comment: String::new(),
        expected: None,
    });
    assert_eq!(policies(&world, 2, Operator), ["no-smtp"]);
    remove(&mut world, 1, Tenant);
    assert_eq!(number(&world, 2, Tenant), 0);
    write(&mut world, 1, Tenant, "again");
    assert_eq!(policies(&world, 2, Tenant), ["again"]);
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(policies(&world, 2, Operator), ["no-smtp"]);
    assert_eq!(policies(&world, 2, Tenant), ["again"]);
}

#[test]
fn a_replacement_that_is_taken_back_leaves_no_copy() {
    let mut world = healthy(2);
    write(&mut world, 1, Operator, "no-smtp");
    write(&mut world, 2, Tenant, "own");
    world.ok(step(1, 2, Prepare));
    assert_eq!(policies(&world, 2, Operator), ["no-smtp"]);
    world.ok(step(1, 2, Undo));
    assert_eq!(number(&world, 2, Operator), 0);
    assert_eq!(policies(&world, 2, Tenant), ["own"], "it stays");
    write(&mut world, 1, Operator, "emergency");
    assert_eq!(number(&world, 2, Operator), 0, "it replaces nothing");
    world.ok(step(1, 2, Prepare));
    assert_eq!(policies(&world, 2, Operator), ["emergency"]);

    // A copy that somebody changed is not a copy.
    write(&mut world, 2, Operator, "changed");
    world.ok(step(1, 2, Undo));
    assert_eq!(policies(&world, 2, Operator), ["changed"]);
}

#[test]
fn sets_that_were_changed_on_both_stop_the_take_over() {
    let mut world = healthy(2);
    write(&mut world, 1, Operator, "no-smtp");
    write(&mut world, 2, Tenant, "own");
    world.ok(step(1, 2, Prepare));
    // One that was written for the replacement alone is meant to differ.
    write(&mut world, 2, Operator, "other");
    let both = [(Operator, 2), (Tenant, 1)];
    world.ok(applied(2, both));
    let mut same = world.clone();
    same.ok(step(1, 2, TakeOver));

    write(&mut world, 1, Operator, "emergency");
    assert_eq!(policies(&world, 1, Operator), ["emergency"]);
    assert_eq!(policies(&world, 2, Operator), ["other"], "it stays");
    let outcome = world.apply(step(1, 2, TakeOver));
    let error = outcome.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::FirewallNotReplaced);
    assert!(
        error.message.contains("operator are at revision 2"),
        "{error}"
    );
    assert!(error.hint.contains("--undo"), "{error}");
    let again = world.refused(step(1, 2, Prepare));
    assert_eq!(again, ErrorCode::FirewallNotReplaced);

    // Either remedy helps.
    let mut equal = world.clone();
    write(&mut equal, 2, Operator, "emergency");
    equal.ok(applied(2, [(Operator, 3), (Tenant, 1)]));
    equal.ok(step(1, 2, TakeOver));
    world.ok(step(1, 2, Undo));
    world.ok(step(1, 2, Prepare));
    world.ok(step(1, 2, TakeOver));
    assert_eq!(policies(&world, 2, Operator), ["other"]);

    // From now on the rules would end with the old firewall.
    let late = named(1, Operator, "late");
    assert_eq!(world.refused(late), ErrorCode::FirewallNotReplaced);
    assert_eq!(policies(&world, 1, Operator), ["emergency"]);
    write(&mut world, 2, Operator, "late");
}

/// Two firewalls, of which the second is in one more external network.
fn with_uplink() -> World {
    let mut world = healthy(1);
    world.ok(CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["198.51.100.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(101),
        ..network("uplink")
    });
    world.waiting(2);
    let networks = ["internet", "private", "uplink"].map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    world.ok(AllocateMachine {
        machine: Some(id(2)),
        partition: None,
        size: None,
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.to_vec(),
        ..allocation_of(2)
    });
    world.install(2, 2);
    world.phone_home(2);
    world.ok(report(2, 9, None));
    world
}

#[test]
fn a_replacement_that_cannot_have_rules_stops_nobody_from_writing_them() {
    // The first firewall is to take the place of the second one, and is not in its third network.
    let mut world = with_uplink();
    world.ok(step(2, 1, Prepare));
    world.ok(limited(2, "uplink"));
    assert_eq!(
        (number(&world, 2, Operator), number(&world, 1, Operator)),
        (1, 0)
    );
    assert_eq!(world.refused(step(2, 1, Prepare)), ErrorCode::InvalidField);
    assert_eq!(
        world.refused(step(2, 1, TakeOver)),
        ErrorCode::FirewallNotReplaced
    );
    // Written in another way they are carried over.
    world.ok(limited(2, "internet"));
    assert_eq!(number(&world, 1, Operator), 1);
    world.ok(applied(1, [(Operator, 1), (Tenant, 0)]));
    world.ok(step(2, 1, TakeOver));
    assert_eq!(
        world.refused(limited(2, "uplink")),
        ErrorCode::FirewallNotReplaced
    );
}

#[test]
fn a_dead_replacement_stops_nobody_from_writing_rules() {
    let mut world = with_uplink();
    world.ok(step(2, 1, Prepare));
    world.ok(step(2, 1, TakeOver));
    let late = limited(2, "uplink");
    assert_eq!(world.refused(late), ErrorCode::FirewallNotReplaced);
    // The second firewall carries the traffic again.
    world.ok(report(1, 9, Some("a probe failed")));
    world.ok(limited(2, "uplink"));
    assert_eq!(
        (number(&world, 2, Operator), number(&world, 1, Operator)),
        (1, 0)
    );
    let lacking = FirewallFault::RulesDiffer {
        other: id(2),
        owner: Operator,
        revision: 1,
    };
    assert_eq!(
        (lacks(&world, 2), lacks(&world, 1)),
        (vec![], vec![lacking])
    );
    // The first one is mended, and lacks them still, until both have the same.
    world.ok(report(1, 9, None));
    assert_eq!(lacks(&world, 1), [lacking]);
    world.ok(limited(2, "internet"));
    assert_eq!(number(&world, 1, Operator), 1);
    assert_eq!(lacks(&world, 1), []);
}

#[test]
fn rules_of_the_new_firewall_come_back_with_the_place() {
    let mut world = healthy(2);
    write(&mut world, 1, Tenant, "web");
    taken_over(&mut world, [(Operator, 0), (Tenant, 1)]);
    // The first rules of the operator, and other ones of the project, for the active firewall.
    write(&mut world, 2, Operator, "emergency");
    write(&mut world, 2, Tenant, "other");
    assert_eq!(policies(&world, 1, Operator), ["emergency"]);
    assert_eq!(policies(&world, 1, Tenant), ["other"]);
    // It fails, and gives the place back by itself. Until one of both is gone they have the same.
    world.ok(report(2, 9, Some("a probe failed")));
    write(&mut world, 1, Operator, "late");
    assert_eq!(policies(&world, 2, Operator), ["late"]);
    remove(&mut world, 2, Tenant);
    assert_eq!(number(&world, 1, Tenant), 0);
    write(&mut world, 2, Tenant, "again");
    assert_eq!(policies(&world, 1, Tenant), ["again"]);
    assert_eq!((lacks(&world, 1), lacks(&world, 2)), (vec![], vec![]));
    world.ok(step(1, 2, Undo));
    assert_eq!(policies(&world, 1, Operator), ["late"]);
    assert_eq!(policies(&world, 1, Tenant), ["again"]);
    // From now on each has its own.
    write(&mut world, 2, Operator, "own");
    assert_eq!(policies(&world, 1, Operator), ["late"]);
}

#[test]
fn rules_that_cannot_come_back_stop_the_undo() {
    let mut world = healthy(2);
    write(&mut world, 1, Operator, "no-smtp");
    write(&mut world, 2, Operator, "own");
    taken_over(&mut world, [(Operator, 1), (Tenant, 0)]);
    // Sets that differed before are meant to.
    let mut early = world.clone();
    early.ok(step(1, 2, Undo));
    assert_eq!(policies(&early, 2, Operator), ["own"]);

    write(&mut world, 2, Operator, "emergency");
    assert_eq!(policies(&world, 1, Operator), ["no-smtp"], "it stays");
    let error = world.apply(step(1, 2, Undo)).result.unwrap_err();
    assert_eq!(error.code, ErrorCode::FirewallNotReplaced);
    assert!(
        error.message.contains("operator are at revision 2"),
        "{error}"
    );
    assert!(error.hint.contains("--operator"), "{error}");
    assert_eq!(
        world.refused(step(1, 2, Prepare)),
        ErrorCode::FirewallNotReplaced
    );
    // The one that is active again by itself is shown.
    world.ok(report(2, 9, Some("a probe failed")));
    let lacking = FirewallFault::RulesDiffer {
        other: id(2),
        owner: Operator,
        revision: 2,
    };
    assert_eq!(
        (lacks(&world, 1), lacks(&world, 2)),
        (vec![lacking], vec![])
    );

    // Written for both, they are one from then on.
    write(&mut world, 1, Operator, "emergency");
    assert_eq!(lacks(&world, 1), []);
    write(&mut world, 2, Operator, "late");
    assert_eq!(policies(&world, 1, Operator), ["late"]);
    world.ok(step(1, 2, Undo));
}

#[test]
fn a_replacement_that_had_the_place_keeps_its_rules_when_it_is_taken_back() {
    let mut world = healthy(2);
    write(&mut world, 1, Operator, "no-smtp");
    taken_over(&mut world, [(Operator, 1), (Tenant, 0)]);
    world.ok(step(1, 2, Undo));
    // Routes lead to it for some seconds more.
    assert_eq!(policies(&world, 2, Operator), ["no-smtp"]);
    write(&mut world, 1, Operator, "emergency");
    assert_eq!(
        policies(&world, 2, Operator),
        ["no-smtp"],
        "it replaces nothing"
    );

    // The next preparation takes them for no set of its own.
    let mut again = world.clone();
    again.ok(step(1, 2, Prepare));
    assert_eq!(policies(&again, 2, Operator), ["emergency"]);
    let mut without = world.clone();
    remove(&mut without, 1, Operator);
    without.ok(step(1, 2, Prepare));
    assert_eq!(number(&without, 2, Operator), 0);
    // Somebody wants these, though they are the same.
    write(&mut world, 2, Operator, "no-smtp");
    world.ok(step(1, 2, Prepare));
    assert_eq!(policies(&world, 2, Operator), ["no-smtp"]);

    // One that carries the traffic without the place, because the other one failed.
    let mut world = healthy(2);
    write(&mut world, 1, Operator, "no-smtp");
    world.ok(step(1, 2, Prepare));
    world.ok(report(1, 9, Some("a probe failed")));
    world.ok(step(1, 2, Undo));
    assert_eq!(policies(&world, 2, Operator), ["no-smtp"]);
}
