//! The projects that change a node, and the fields that each of them changes.

use super::*;
use crate::leases::{LESSEE, OWNER, STRANGER, grant, leased, owned, with_machine};

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
fn a_user_changes_its_instance_and_an_owner_everything_else() {
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
    let cases: [(Prepare, u128, [Option<ErrorCode>; 3]); 6] = [
        (owned, OWNER, [None, None, None]),
        (leased, OWNER, [refused, None, None]),
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
fn an_owner_puts_nothing_into_the_instance_of_its_lessee() {
    let vif = NodeVif {
        network: Some(text("private")),
        mac: Some(mac(1)),
    };
    let contents = [
        NodeContent {
            instance_info: [("configdrive".to_owned(), "{}".to_owned())].into(),
            ..NodeContent::default()
        },
        NodeContent {
            vifs: [("private".to_owned(), vif)].into(),
            ..NodeContent::default()
        },
        NodeContent {
            protected: Some("mine".to_owned()),
            ..NodeContent::default()
        },
        NodeContent {
            boot_device: "pxe".to_owned(),
            ..NodeContent::default()
        },
    ];
    for content in contents {
        let mut world = leased();
        let op = world.change_by(1, OWNER, content.clone());
        assert_eq!(world.refused(op), ErrorCode::TenureRefused, "{content:?}");
        // The lease and the instance in one command are refused as well.
        let mut world = owned();
        let op = UpdateNode {
            grant: Some(grant(&world)),
            node: Some(world.change_by(1, OWNER, content.clone())),
            ..UpdateNode::of(id(1))
        };
        assert_eq!(world.refused(op), ErrorCode::TenureRefused, "{content:?}");
        assert!(world.lease().is_none());
        let mut world = leased();
        let op = world.change_by(1, LESSEE, content);
        world.ok(op);
        // Other fields are the owner's, with the lessee's instance as it is.
        let described = NodeContent {
            description: "rack 7".to_owned(),
            ..world.node(1).content.clone()
        };
        let op = world.change_by(1, OWNER, described.clone());
        world.ok(op);
        assert_eq!(world.node(1).content, described);
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
