//! Changes of a node together with its owner, lessee and class: wholly, or not at all.

use super::*;
use crate::leases::{LESSEE, OWNER, STRANGER, end, grant, leased, owner, with_machine};

/// The class of machine 1.
fn class(project: Option<u128>) -> SetMachineCapability {
    SetMachineCapability {
        machine: id(1),
        project: project.map(id),
        resource_class: ClassChange::Set("gold".parse().unwrap()),
        traits: None,
    }
}

fn update() -> UpdateNode {
    UpdateNode::of(id(1))
}

fn wish() -> NodeContent {
    NodeContent {
        instance_info: [("image_source".to_owned(), "\"x\"".to_owned())].into(),
        ..called("web")
    }
}

#[test]
fn all_parts_are_one_change() {
    let mut world = with_machine();
    world.change_node(1, called("old"));
    let op = UpdateNode {
        owner: Some(owner(1, Some(OWNER))),
        grant: Some(grant(&world)),
        capability: Some(class(None)),
        node: Some(world.change(1, wish())),
        ..update()
    };
    let machine = world.ok(op).machine().unwrap();
    assert_eq!(machine.tenure.owner, Some(id(OWNER)));
    assert_eq!(machine.tenure.lessee, Some(id(LESSEE)));
    assert!(machine.capability.resource_class.is_some());
    assert_eq!(world.node(1).content, wish(), "after the other hands");
}

#[test]
fn a_lessee_after_another_finds_nothing_of_it() {
    let mut world = leased();
    world.change_node(1, wish());
    let next = GrantLease {
        id: id(501),
        lessee: id(STRANGER),
        ..grant(&world)
    };
    world.ok(UpdateNode {
        end: Some(end(LeaseEnder::Administrator)),
        grant: Some(next),
        ..update()
    });
    assert_eq!(world.lease().unwrap().lessee, id(STRANGER));
    assert_eq!(world.node(1).content, called("web"));
}

#[test]
fn a_part_that_is_refused_takes_the_others_with_it() {
    let mut world = leased();
    world.ok(EnrolNode {
        content: called("taken"),
        ..enrol(50)
    });
    let stale = SetNode {
        expected: 7,
        ..world.change(1, wish())
    };
    let taken = world.change(1, called("taken"));
    let elsewhere = SetMachineCapability {
        machine: id(50),
        ..class(None)
    };
    let ended = || UpdateNode {
        end: Some(end(LeaseEnder::Administrator)),
        ..update()
    };
    for (op, code) in [
        (
            UpdateNode {
                node: Some(stale),
                ..ended()
            },
            ErrorCode::Conflict,
        ),
        (
            UpdateNode {
                node: Some(taken),
                ..ended()
            },
            ErrorCode::AlreadyExists,
        ),
        (
            UpdateNode {
                capability: Some(elsewhere),
                ..ended()
            },
            ErrorCode::InvalidField,
        ),
        (
            UpdateNode {
                capability: Some(class(Some(LESSEE))),
                ..update()
            },
            ErrorCode::TenureRefused,
        ),
        (
            UpdateNode {
                owner: Some(owner(1, None)),
                ..update()
            },
            ErrorCode::MachineLeased,
        ),
    ] {
        assert_eq!(world.refused(op), code);
    }
    assert!(world.lease().is_some());
    let absent = UpdateNode::of(id(99));
    assert_eq!(world.refused(absent), ErrorCode::NotFound);
}
