//! Revisions of sets of firewall rules: history, conflicts, deletion.

use control_state::query::rule_history;
use control_state::*;
use proto_firewall::{RuleContent, RuleOwner};

use crate::firewall_rules::{firewall, row, web, world, write};
use crate::world::*;

#[test]
fn each_write_is_a_revision_and_the_last_fifty_are_kept() {
    let mut world = world();
    let set = firewall(RuleOwner::Tenant);
    for port in 1..=60 {
        world.ok(write(set.clone(), web(port)));
    }
    let current = row(&world, &set).unwrap();
    assert_eq!(current.current.number, 60);
    let history: Vec<u64> = rule_history(&world.tables, &set)
        .map(|history| history.revision.number)
        .collect();
    assert_eq!(history.len(), 49);
    assert_eq!((history[0], history[48]), (59, 11));
    let bytes: u64 = rule_history(&world.tables, &set)
        .map(|history| history.revision.bytes)
        .sum();
    assert_eq!(current.history_bytes, bytes);
    // The same content again is no revision.
    world.ok(write(set.clone(), web(60)));
    assert_eq!(row(&world, &set).unwrap().current.number, 60);

    let back = |number, expected| RollBackFirewallRules {
        set: firewall(RuleOwner::Tenant),
        project: Some(id(1)),
        number,
        comment: "back".into(),
        expected,
    };
    assert_eq!(world.refused(back(5, None)), ErrorCode::NotFound);
    assert_eq!(world.refused(back(60, None)), ErrorCode::InvalidField);
    assert_eq!(world.refused(back(20, Some(59))), ErrorCode::Conflict);
    world.ok(back(20, Some(60)));
    let current = row(&world, &set).unwrap().current;
    assert_eq!((current.number, current.rolled_back_to), (61, Some(20)));
    assert_eq!(current.content, web(20));
}

#[test]
fn a_write_over_an_unseen_revision_is_refused() {
    let mut world = world();
    let set = firewall(RuleOwner::Tenant);
    let expecting = |port, expected| SetFirewallRules {
        expected: Some(expected),
        ..write(firewall(RuleOwner::Tenant), web(port))
    };
    assert_eq!(world.refused(expecting(80, 1)), ErrorCode::Conflict);
    world.ok(expecting(80, 0));
    assert_eq!(world.refused(expecting(81, 0)), ErrorCode::Conflict);
    world.ok(expecting(81, 1));
    let delete = |expected| DeleteFirewallRules {
        set: firewall(RuleOwner::Tenant),
        project: Some(id(1)),
        expected,
    };
    assert_eq!(world.refused(delete(Some(1))), ErrorCode::Conflict);
    world.ok(delete(Some(2)));
    assert_eq!(row(&world, &set), None);
    assert_eq!(world.refused(delete(None)), ErrorCode::NotFound);
}

/// A report of a deleted revision must not look like one of the set that came after it.
#[test]
fn numbers_go_on_after_a_deletion() {
    let mut world = world();
    let set = firewall(RuleOwner::Tenant);
    let numbers = |world: &World| -> Vec<u64> {
        let earlier = rule_history(&world.tables, &set);
        earlier.map(|history| history.revision.number).collect()
    };
    for (deleted, created) in [(3, 4), (8, 9)] {
        world.ok(write(set.clone(), web(80)));
        world.ok(write(set.clone(), web(81)));
        world.ok(DeleteFirewallRules {
            set: set.clone(),
            project: Some(id(1)),
            expected: None,
        });
        assert_eq!(numbers(&world), [deleted], "the deletion alone");
        world.ok(write(set.clone(), web(80)));
        let current = row(&world, &set).unwrap();
        assert_eq!(current.current.number, created);
        let deletion = rule_history(&world.tables, &set).next().unwrap();
        assert_eq!(current.history_bytes, deletion.revision.bytes);
        assert_eq!(deletion.revision.content, RuleContent::default());
        let seen_before = SetFirewallRules {
            expected: Some(deleted - 1),
            ..write(set.clone(), web(82))
        };
        assert_eq!(world.refused(seen_before), ErrorCode::Conflict);
        // The second round begins without a set, too.
        world.ok(DeleteFirewallRules {
            set: set.clone(),
            project: Some(id(1)),
            expected: Some(created),
        });
    }
}
