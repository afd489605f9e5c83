//! Site policies: text with a name, bounded, changed one generation after the other.

use control_state::*;

use crate::world::*;

fn set(name: &str) -> SetPolicy {
    SetPolicy {
        name: name.to_owned(),
        source: "package site".to_owned(),
        methods: ["/a.B/C".to_owned()].into(),
        expected: None,
    }
}

#[test]
fn a_policy_counts_its_changes() {
    let mut world = World::empty();
    let first = world.ok(set("night")).policy().unwrap();
    assert_eq!((first.generation, first.updated_at), (1, world.now));
    let of = |expected| SetPolicy {
        expected: Some(expected),
        ..set("night")
    };
    assert_eq!(world.refused(of(0)), ErrorCode::Conflict);
    assert_eq!(world.refused(of(2)), ErrorCode::Conflict);
    assert_eq!(world.ok(of(1)).policy().unwrap().generation, 2);
    let remove = RemovePolicy {
        name: "night".to_owned(),
    };
    assert_eq!(world.ok(remove.clone()).policy().unwrap().generation, 2);
    assert_eq!(world.refused(remove), ErrorCode::NotFound);
    assert_eq!(world.ok(of(0)).policy().unwrap().generation, 1);
}

#[test]
fn policies_are_bounded() {
    let mut world = World::empty();
    for name in ["", "-a", "a-", "A", "a/b", "a b", &"a".repeat(64)] {
        assert_eq!(world.refused(set(name)), ErrorCode::InvalidField, "{name}");
    }
    let long = SetPolicy {
        source: " ".repeat(POLICY_BYTES_MAX + 1),
        ..set("long")
    };
    assert_eq!(world.refused(long), ErrorCode::InvalidField);
    let idle = SetPolicy {
        methods: Default::default(),
        ..set("idle")
    };
    assert_eq!(world.refused(idle), ErrorCode::InvalidField);
    for number in 0..POLICIES_MAX {
        world.ok(set(&format!("p{number}")));
    }
    assert_eq!(world.refused(set("more")), ErrorCode::TooMany);
    world.ok(set("p0"));
}
