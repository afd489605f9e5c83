//! A firewall takes the place of another one, step by step, and what is told about both.

use control_state::query::{
    DISTANCE_MAX, FirewallRole, firewall_replacement, firewall_report_matters, firewall_standing,
};
use control_state::*;
use proto_firewall::{PortSpec, RuleContent, RuleOwner, RuleSpec};

use crate::firewall_standby::{distance, firewalls, report};
use crate::world::*;

/// Firewalls that run with their rules applied. The first one is active.
pub(crate) fn healthy(count: u128) -> World {
    let mut world = firewalls(count);
    for number in 1..=count {
        world.ok(report(number, 7, None));
    }
    world
}

pub(crate) fn step(machine: u128, by: u128, step: ReplacementStep) -> ReplaceFirewall {
    ReplaceFirewall {
        machine: id(machine),
        project: id(1),
        by: id(by),
        step,
    }
}

pub(crate) fn set(number: u128, owner: RuleOwner) -> RuleSetKey {
    RuleSetKey {
        target: RuleTarget::Firewall(id(number)),
        owner,
    }
}

pub(crate) fn write(world: &mut World, number: u128, owner: RuleOwner, name: &str) {
    world.ok(named(number, owner, name));
}

/// A write of one policy.
pub(crate) fn named(number: u128, owner: RuleOwner, name: &str) -> SetFirewallRules {
    let rule = RuleSpec {
        name: name.into(),
        ports: vec![PortSpec {
            port: Some(443),
            ..PortSpec::default()
        }],
        ..RuleSpec::default()
    };
    SetFirewallRules {
        set: set(number, owner),
        project: None,
        content: RuleContent {
            egress_policies: vec![rule],
            ..RuleContent::default()
        },
        comment: String::new(),
        expected: None,
    }
}

/// Names of the policies of a set. Empty if there is no set.
pub(crate) fn policies(world: &World, number: u128, owner: RuleOwner) -> Vec<String> {
    let row = world.tables.get::<FirewallRuleSet>(&set(number, owner));
    let policies = row.map(|row| row.current.content.egress_policies.as_slice());
    let policies = policies.unwrap_or_default().iter();
    policies.map(|policy| policy.name.clone()).collect()
}

/// A report of a firewall that has these revisions of its own sets.
pub(crate) fn applied(number: u128, revisions: [(RuleOwner, u64); 2]) -> ReportFirewall {
    let sets = revisions.map(|(owner, revision)| (set(number, owner).to_string(), revision));
    ReportFirewall {
        applied_sets: sets.into(),
        ..report(number, 9, None)
    }
}

fn distances<const N: usize>(world: &World) -> [u32; N] {
    std::array::from_fn(|at| distance(world, u128::try_from(at).unwrap() + 1))
}

#[test]
fn a_replacement_gets_the_rules_and_then_the_place() {
    use ReplacementStep::{Prepare, TakeOver, Undo};
    let mut world = healthy(2);
    write(&mut world, 1, RuleOwner::Operator, "operators");
    write(&mut world, 1, RuleOwner::Tenant, "tenants");
    write(&mut world, 2, RuleOwner::Tenant, "own");
    world.ok(step(1, 2, Prepare));
    let names = |owner| policies(&world, 2, owner);
    assert_eq!(names(RuleOwner::Operator), ["operators"]);
    assert_eq!(names(RuleOwner::Tenant), ["own"], "it stays");
    assert_eq!(
        distances(&world),
        [0, 1],
        "nothing is preferred otherwise yet"
    );

    // Not before its kernel has the rules.
    let refused = world.refused(step(1, 2, TakeOver));
    assert_eq!(refused, ErrorCode::FirewallNotReplaced);
    world.ok(applied(
        2,
        [(RuleOwner::Operator, 1), (RuleOwner::Tenant, 1)],
    ));
    world.ok(step(1, 2, TakeOver));
    assert_eq!(distances(&world), [1, 0]);
    let (by, replaced) = firewall_replacement(&world.tables, id(1)).unwrap();
    assert_eq!((by, replaced.taken_at), (id(2), Some(world.now)));

    // Each step can be repeated.
    let revision = world.tables.revision();
    world.later(1_000);
    for repeated in [Prepare, TakeOver] {
        world.ok(step(1, 2, repeated));
    }
    assert_eq!(world.tables.revision(), revision);

    // One that fails gives the place back, and gets it again.
    world.ok(report(2, 9, Some("a probe failed")));
    assert_eq!(distances(&world), [0, 1]);
    world.ok(applied(
        2,
        [(RuleOwner::Operator, 1), (RuleOwner::Tenant, 1)],
    ));
    assert_eq!(distances(&world), [1, 0]);

    let mut undone = world.clone();
    undone.ok(step(1, 2, Undo));
    assert_eq!(distances(&undone), [0, 1]);
    assert!(firewall_replacement(&undone.tables, id(1)).is_none());

    // Freed, the replacement takes nothing with it.
    let mut freed = world.clone();
    freed.free(2);
    assert_eq!(distances(&freed), [0, DISTANCE_MAX]);
    assert!(firewall_replacement(&freed.tables, id(1)).is_none());

    world.free(1);
    assert_eq!(distances(&world), [DISTANCE_MAX, 0]);
}

#[test]
fn the_place_outlives_the_firewall_that_had_it() {
    use ReplacementStep::{Prepare, TakeOver};
    let mut world = healthy(4);
    for (old, new, wanted) in [(1, 3, [3, 1, 0, 2]), (2, 4, [2, 3, 0, 1])] {
        world.ok(step(old, new, Prepare));
        world.ok(step(old, new, TakeOver));
        assert_eq!(distances(&world), wanted, "{new} for {old}");
    }
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert!(world.machine(1).allocation.is_none());
    world.free(2);
    assert_eq!([3, 4].map(|number| distance(&world, number)), [0, 1]);
}

#[test]
fn what_would_be_no_replacement_is_refused() {
    use ReplacementStep::{Prepare, TakeOver, Undo};
    let mut world = healthy(4);
    world.ok(child("other", 1));
    world.waiting(5);
    let networks = ["internet", "other"].map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    world.ok(AllocateMachine {
        machine: Some(id(5)),
        partition: None,
        size: None,
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.to_vec(),
        ..allocation_of(5)
    });
    world.running(6, 6);
    world.free(4);
    world.ok(step(1, 2, Prepare));
    let of_project = |project: u128| ReplaceFirewall {
        project: id(project),
        ..step(1, 2, Prepare)
    };
    for (op, wanted) in [
        (of_project(2), ErrorCode::NotFound),
        (step(9, 2, Prepare), ErrorCode::NotFound),
        // A machine that is no firewall.
        (step(6, 2, Prepare), ErrorCode::NotFound),
        (step(1, 6, Prepare), ErrorCode::NotFound),
        (step(3, 3, Prepare), ErrorCode::InvalidField),
        // Being freed.
        (step(4, 3, Prepare), ErrorCode::WrongPhase),
        (step(3, 4, Prepare), ErrorCode::WrongPhase),
        // In another private network.
        (step(3, 5, Prepare), ErrorCode::FirewallNotReplaced),
        // Not prepared.
        (step(1, 3, TakeOver), ErrorCode::FirewallNotReplaced),
        // The first is replaced already, or the second has a place to take.
        (step(1, 3, Prepare), ErrorCode::FirewallNotReplaced),
        (step(3, 2, Prepare), ErrorCode::FirewallNotReplaced),
        (step(3, 1, Prepare), ErrorCode::FirewallNotReplaced),
        (step(2, 3, Prepare), ErrorCode::FirewallNotReplaced),
        (step(2, 1, Prepare), ErrorCode::FirewallNotReplaced),
    ] {
        let (machine, by, step) = (op.machine, op.by, op.step);
        assert_eq!(world.refused(op), wanted, "{machine} by {by}: {step:?}");
    }
    // To undo a replacement that is not there changes nothing.
    let revision = world.tables.revision();
    world.ok(step(3, 1, Undo));
    assert_eq!(world.tables.revision(), revision);
}

#[test]
fn rules_that_the_replacement_cannot_have_stop_its_preparation() {
    let mut world = healthy(2);
    let address: CreateIp = ip(7, "internet", 1);
    let made = world.ok(address).ip().unwrap();
    let nat = proto_firewall::EgressAddresses {
        network_id: "internet".into(),
        ips: vec![made.ip.to_string()],
    };
    world.ok(SetFirewallRules {
        set: set(1, RuleOwner::Tenant),
        project: Some(id(1)),
        content: RuleContent {
            egress_addresses: vec![nat],
            ..RuleContent::default()
        },
        comment: String::new(),
        expected: None,
    });
    world.ok(DeleteIp {
        key: made.key(),
        project: id(1),
        underlay: false,
    });
    let prepared = step(1, 2, ReplacementStep::Prepare);
    assert_eq!(world.refused(prepared), ErrorCode::InvalidField);
    assert_eq!(distances(&world), [0, 1]);
}

#[test]
fn a_firewall_stands_as_reports_and_signs_of_life_tell() {
    use FirewallRole::{Active, Standby, Withdrawn};
    let mut world = firewalls(2);
    let standings = |world: &World| {
        [1, 2].map(|number| {
            let found = firewall_standing(&world.tables, id(number)).unwrap();
            (found.role, found.place, found.reason)
        })
    };
    let no_report = "its agent has not reported rules in its kernel".to_owned();
    let nothing = String::new;
    assert_eq!(
        standings(&world),
        [(Withdrawn, 0, no_report.clone()), (Withdrawn, 1, no_report)]
    );
    world.ok(report(1, 7, None));
    world.ok(report(2, 7, None));
    assert_eq!(
        standings(&world),
        [(Active, 0, nothing()), (Standby, 1, nothing())]
    );
    let routes = |wanted, observed| FirewallRoutes {
        wanted,
        observed,
        error: None,
    };
    let withdrawn = ReportFirewall {
        routes: Some(routes(DISTANCE_MAX, Some(DISTANCE_MAX))),
        ..report(1, 7, None)
    };
    assert!(firewall_report_matters(&world.tables, &withdrawn));
    world.ok(withdrawn);
    let [(role, place, reason), _] = standings(&world);
    assert_eq!((role, place), (Withdrawn, 0));
    assert!(reason.contains("not in force"), "{reason}");
    world.ok(report(1, 7, Some("a probe failed")));
    let [(role, place, reason), other] = standings(&world);
    assert_eq!((role, place), (Standby, 1));
    assert!(reason.contains("a probe failed"), "{reason}");
    assert_eq!(other, (Active, 0, nothing()));
    world.free(1);
    let [first, _] = standings(&world);
    assert_eq!(
        first,
        (Withdrawn, DISTANCE_MAX, "it is being freed".to_owned())
    );
    assert!(firewall_standing(&world.tables, id(9)).is_none());
}
