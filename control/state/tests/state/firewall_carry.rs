//! Rules that are written for a firewall while another one replaces it.

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

#[test]
fn a_replacement_that_cannot_have_rules_stops_nobody_from_writing_them() {
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
    // The first firewall is to take the place of the second one, and is not in its third network.
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
