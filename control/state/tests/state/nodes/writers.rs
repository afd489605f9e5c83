//! The projects that change a node, and the fields that each of them changes.

use super::*;
use crate::leases::{LESSEE, OWNER, STRANGER, leased, with_machine};

/// Fields that end with the use of the machine, and `extra`.
fn of_user() -> NodeContent {
    NodeContent {
        instance_info: [("image_source".to_owned(), "\"x\"".to_owned())].into(),
        protected: Some(String::new()),
        extra: [("note".to_owned(), "1".to_owned())].into(),
        ..NodeContent::default()
    }
}

#[test]
fn a_user_changes_its_instance_and_an_owner_everything() {
    let contents = || {
        [
            ("instance", of_user()),
            ("maintenance", maintained("fan")),
            ("name", called("web")),
        ]
    };
    let refused = Some(ErrorCode::TenureRefused);
    let absent = Some(ErrorCode::NotFound);
    // Of a leased machine, and of one of the site that the project has allocated.
    let in_use = || {
        let mut world = with_machine();
        world.use_machine(1);
        world
    };
    type Prepare = fn() -> World;
    let cases: [(Prepare, u128, [Option<ErrorCode>; 3]); 5] = [
        (leased, OWNER, [None, None, None]),
        (leased, LESSEE, [None, None, refused]),
        (leased, STRANGER, [absent, absent, absent]),
        (in_use, 1, [None, refused, refused]),
        (in_use, 2, [absent, absent, absent]),
    ];
    for (prepare, project, expected) in cases {
        for ((what, content), expected) in contents().into_iter().zip(expected) {
            let mut world = prepare();
            let op = world.change_by(1, project, content);
            let found = world.apply(op).result.err().map(|error| error.code);
            assert_eq!(found, expected, "{what} by {project}");
        }
    }
}

#[test]
fn a_project_that_gave_a_machine_back_writes_nothing_for_the_next() {
    let mut world = with_machine();
    world.use_machine(1);
    world.free(1);
    assert!(world.machine(1).is_held_by(id(1)));
    let late = world.change_by(1, 1, of_user());
    assert_eq!(world.refused(late), ErrorCode::NotFound);
}

#[test]
fn a_user_writes_back_what_others_said() {
    let mut world = leased();
    let described = NodeContent {
        description: "rack 7".to_owned(),
        ..called("web")
    };
    world.change_node(1, described.clone());
    let more = NodeContent {
        instance_name: "db".to_owned(),
        ..described
    };
    let op = world.change_by(1, LESSEE, more.clone());
    world.ok(op);
    assert_eq!(world.node(1).content, more);
}
