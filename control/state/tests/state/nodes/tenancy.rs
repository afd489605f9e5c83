//! Fields of an instance end with the use of the machine, in the command that ends it. Those of the node
//! stay.

use super::*;
use crate::leases::{
    DAY_MS, LESSEE, OWNER, STRANGER, by, decide, end, grant, leased, owned, owner, request,
    with_machine,
};

/// Fields of the node.
fn lasting() -> NodeContent {
    NodeContent {
        description: "rack 7".to_owned(),
        extra: [("asset".to_owned(), "1".to_owned())].into(),
        network_data: [("links".to_owned(), "[]".to_owned())].into(),
        automated_clean: Some(true),
        ..called("node-1")
    }
}

/// The same node with an instance on it.
fn used() -> NodeContent {
    let vif = NodeVif {
        network: Some(text("private")),
        mac: Some(mac(1)),
    };
    NodeContent {
        instance_info: [("configdrive".to_owned(), "\"secret\"".to_owned())].into(),
        instance_name: "web".to_owned(),
        instance: Some(id(90)),
        protected: Some("mine".to_owned()),
        boot_device: "disk".to_owned(),
        vifs: [("private".to_owned(), vif)].into(),
        ..lasting()
    }
}

/// Project 1 uses a machine of the site.
fn in_use() -> World {
    let mut world = with_machine();
    world.use_machine(1);
    world
}

/// Project 1 uses a machine that it leases.
fn leased_and_in_use() -> World {
    let mut world = leased();
    world.use_machine(1);
    world
}

/// A way in which a machine comes into other hands, from a state on.
type HandOver = (&'static str, fn() -> World, fn(&mut World));

const HAND_OVERS: [HandOver; 10] = [
    ("freed by its project", in_use, |world| world.free(1)),
    ("handed back in use", leased_and_in_use, |world| {
        world.ok(end(by(LESSEE)));
    }),
    ("handed back", leased, |world| {
        world.ok(end(by(LESSEE)));
    }),
    (
        "lease ended by an administrator",
        leased_and_in_use,
        |world| {
            world.ok(end(LeaseEnder::Administrator));
        },
    ),
    ("lease over", leased_and_in_use, |world| {
        world.tick(11 * DAY_MS);
    }),
    ("another lessee", leased, |world| {
        world.ok(request(LESSEE, Some(STRANGER)));
        world.ok(decide(OWNER, STRANGER, true));
    }),
    ("leased", owned, |world| {
        let grant = grant(world);
        world.ok(grant);
    }),
    ("another owner", owned, |world| {
        world.ok(owner(1, Some(STRANGER)));
    }),
    ("no owner", owned, |world| {
        world.ok(owner(1, None));
    }),
    ("given away", owned, |world| {
        world.ok(TransferMachine {
            machine: id(1),
            project: id(OWNER),
            to: id(STRANGER),
        });
    }),
];

#[test]
fn an_instance_ends_with_the_hands_that_had_it() {
    for (what, prepare, hand_over) in HAND_OVERS {
        let mut world = prepare();
        world.change_node(1, used());
        let generation = world.node(1).meta.generation;
        let stale = world.change(1, used());
        hand_over(&mut world);
        let record = world.node(1);
        assert_eq!(record.content, lasting(), "{what}");
        assert_eq!(record.meta.generation, generation + 1, "{what}");
        // A client that read the instance does not write it back.
        assert_eq!(world.refused(stale), ErrorCode::Conflict, "{what}");
    }
}

#[test]
fn a_user_that_becomes_the_owner_keeps_its_instance() {
    let mut world = in_use();
    world.change_node(1, used());
    world.ok(owner(1, Some(1)));
    assert_eq!(world.node(1).content, used());
    world.free(1);
    assert_eq!(world.node(1).content, lasting());
}

#[test]
fn a_stage_of_a_node_in_use_ends_with_the_use() {
    let mut world = in_use();
    world.change_node(1, staged(ProvisionState::ServiceHold));
    world.free(1);
    assert_eq!(world.node(1).content, NodeContent::default());
}

#[test]
fn a_use_without_a_record_makes_none() {
    let mut world = in_use();
    world.free(1);
    assert!(world.tables.get::<NodeRecord>(&id(1)).is_none());
}

#[test]
fn additional_fields_of_a_user_end_with_its_use() {
    let extra = |values: &[(&str, &str)]| NodeContent {
        extra: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..lasting()
    };
    let mut world = in_use();
    world.change_node(1, lasting());
    let by_user = extra(&[("asset", "mine"), ("note", "secret")]);
    let op = world.change_by(1, 1, by_user);
    world.ok(op);
    // An administrator adds one meanwhile.
    let by_site = extra(&[("asset", "mine"), ("note", "secret"), ("rack", "7")]);
    world.change_node(1, by_site);
    world.free(1);
    let record = world.node(1);
    assert_eq!(record.content, extra(&[("asset", "1"), ("rack", "7")]));
    assert!(record.replaced_extra.is_empty());
}
