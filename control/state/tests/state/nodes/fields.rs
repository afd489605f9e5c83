//! The fields of a node: locked by their generation, bounded, unique where clients name things.

use super::*;

/// Changes of a node's fields, and the refusal of each.
type Harm = fn(&mut NodeContent);

/// A content with something of everything that is unique.
fn unique() -> NodeContent {
    let port = NodePort {
        id: Some(id(70)),
        name: "left".into(),
        group: Some(id(80)),
        ..NodePort::default()
    };
    let group = NodePortGroup {
        name: "bond".into(),
        ..group(80)
    };
    NodeContent {
        instance: Some(id(90)),
        ports: [(mac(5), port)].into(),
        groups: vec![group],
        ..called("web")
    }
}

fn fields(count: usize, bytes: usize) -> JsonFields {
    let field = |number: usize| (format!("key-{number}"), "x".repeat(bytes));
    (0..count).map(field).collect()
}

fn ports(count: u8) -> std::collections::BTreeMap<MacAddr, NodePort> {
    let port = |number| (MacAddr([2, 0, 0, 0, 0, number]), NodePort::default());
    (0..count).map(port).collect()
}

#[test]
fn a_change_is_locked_by_the_generation() {
    let mut world = World::new();
    world.waiting(1);
    let first = world.change(1, called("web"));
    world.ok(first.clone());
    assert_eq!(world.node(1).meta.generation, 1);
    // Somebody else has written meanwhile.
    assert_eq!(world.refused(first.clone()), ErrorCode::Conflict);
    let same = world.change(1, called("web"));
    assert_eq!(world.apply(same).changes, [], "nothing changes");
    world.change_node(1, called("mail"));
    assert_eq!(world.node(1).meta.generation, 2);
    assert_eq!(world.named_node("web"), None);
    assert_eq!(world.named_node("mail"), Some(1));
    let absent = world.change(9, called("web"));
    assert_eq!(world.refused(absent), ErrorCode::NotFound);
    let late = SetNode {
        expected: 1,
        ..first
    };
    assert_eq!(world.refused(late), ErrorCode::Conflict);
}

#[test]
fn a_node_is_found_by_what_its_clients_named() {
    let mut world = World::new();
    world.ok(EnrolNode {
        content: unique(),
        ..enrol(50)
    });
    let tables = &world.tables;
    let machine = Some(id::<MachineId>(50));
    let port = Some((id::<MachineId>(50), mac(5)));
    assert_eq!(query::node_named(tables, "web"), machine);
    assert_eq!(query::node_of_instance(tables, uuid(90)), machine);
    assert_eq!(query::port_of_id(tables, uuid(70)), port);
    assert_eq!(query::port_named(tables, "left"), port);
    assert_eq!(query::described_port(tables, mac(5)), machine);
    assert_eq!(query::group_of_id(tables, uuid(80)), machine);
    let group = Some((id::<MachineId>(50), uuid(80)));
    assert_eq!(query::group_named(tables, "bond"), group);
    assert_eq!(query::port_of_id(tables, uuid(71)), None);
    world.waiting(1);
    let card = query::card_machine(&world.tables, mac(1));
    assert_eq!(card, Some(id(1)));
    world.change_node(50, NodeContent::default());
    let tables = &world.tables;
    assert_eq!(query::node_named(tables, "web"), None);
    assert_eq!(query::port_of_id(tables, uuid(70)), None);
    assert_eq!(query::group_named(tables, "bond"), None);
}

#[test]
fn two_nodes_share_no_name_and_no_port() {
    let mut world = World::new();
    world.ok(EnrolNode {
        content: unique(),
        ..enrol(50)
    });
    world.ok(enrol(51));
    let cases: [(&str, Harm); 7] = [
        ("name", |content| content.name = Some("web".into())),
        ("instance", |content| content.instance = Some(id(90))),
        ("address", |content| {
            content.ports = ports_at(5, NodePort::default())
        }),
        ("port id", |content| {
            let port = NodePort {
                id: Some(id(70)),
                ..NodePort::default()
            };
            content.ports = ports_at(6, port);
        }),
        ("port name", |content| {
            let port = NodePort {
                name: "left".into(),
                ..NodePort::default()
            };
            content.ports = ports_at(6, port);
        }),
        ("group id", |content| content.groups = vec![group(80)]),
        ("group name", |content| {
            let group = NodePortGroup {
                name: "bond".into(),
                ..group(81)
            };
            content.groups = vec![group];
        }),
    ];
    for (what, harm) in cases {
        let mut content = NodeContent::default();
        harm(&mut content);
        let op = world.change(51, content);
        assert_eq!(world.refused(op), ErrorCode::AlreadyExists, "{what}");
    }
    // Its own it keeps.
    let more = NodeContent {
        description: "text".into(),
        ..unique()
    };
    world.change_node(50, more);
}

fn ports_at(number: u128, port: NodePort) -> std::collections::BTreeMap<MacAddr, NodePort> {
    [(mac(number), port)].into()
}

#[test]
fn fields_beyond_their_bounds_are_refused() {
    let mut world = World::new();
    world.ok(enrol(50));
    let cases: [(&str, Harm); 14] = [
        ("64 values", |content| content.extra = fields(65, 1)),
        ("a long value", |content| {
            content.driver_info = fields(1, bounds::JSON_BYTES_MAX + 1)
        }),
        ("a long name of a value", |content| {
            content.properties = [("x".repeat(256), String::new())].into()
        }),
        ("all together", |content| {
            content.extra = fields(5, 16_000);
            content.instance_info = fields(5, 16_000);
        }),
        ("65 ports", |content| content.ports = ports(65)),
        ("17 groups", |content| {
            content.groups = (0..17).map(|number| group(100 + number)).collect()
        }),
        ("17 vifs", |content| {
            let vif = |number: u8| {
                (
                    number.to_string(),
                    NodeVif {
                        network: None,
                        mac: None,
                    },
                )
            };
            content.vifs = (0..17).map(vif).collect();
        }),
        ("33 interfaces", |content| {
            content.interfaces = fields(33, 1)
        }),
        ("a name with spaces", |content| {
            content.name = Some("a b".into())
        }),
        ("an empty name", |content| {
            content.name = Some(String::new())
        }),
        ("a name like an id", |content| {
            content.name = Some(uuid(7).to_string())
        }),
        ("its own part", |content| content.parent = Some(id(50))),
        ("a group that it has not", |content| {
            let port = NodePort {
                group: Some(id(80)),
                ..NodePort::default()
            };
            content.ports = ports_at(6, port);
        }),
        ("a port with a line end", |content| {
            let port = NodePort {
                name: "a\nb".into(),
                ..NodePort::default()
            };
            content.ports = ports_at(6, port);
        }),
    ];
    for (what, harm) in cases {
        let mut content = NodeContent::default();
        harm(&mut content);
        let op = world.change(50, content);
        assert_eq!(world.refused(op), ErrorCode::InvalidField, "{what}");
    }
    let full = NodeContent {
        extra: fields(4, 16_000),
        instance_info: fields(3, 16_000),
        ports: ports(64),
        ..NodeContent::default()
    };
    world.change_node(50, full);
}

#[test]
fn two_parts_of_one_node_have_ids_and_names_of_their_own() {
    let mut world = World::new();
    world.ok(enrol(50));
    let port = |number, id: Option<u128>, name: &str| {
        let port = NodePort {
            id: id.map(uuid),
            name: name.to_owned(),
            ..NodePort::default()
        };
        (mac(number), port)
    };
    let named = |number, name: &str| NodePortGroup {
        name: name.to_owned(),
        ..group(number)
    };
    let content = NodeContent::default;
    for (what, content) in [
        (
            "port id",
            NodeContent {
                ports: [port(6, Some(70), ""), port(7, Some(70), "")].into(),
                ..content()
            },
        ),
        (
            "port name",
            NodeContent {
                ports: [port(6, None, "a"), port(7, None, "a")].into(),
                ..content()
            },
        ),
        (
            "group id",
            NodeContent {
                groups: vec![named(80, "a"), named(80, "b")],
                ..content()
            },
        ),
        (
            "group name",
            NodeContent {
                groups: vec![named(80, "a"), named(81, "a")],
                ..content()
            },
        ),
    ] {
        let op = world.change(50, content);
        assert_eq!(world.refused(op), ErrorCode::AlreadyExists, "{what}");
    }
    // Whatever the order of the request is, groups are stored in that of their ids.
    let both = NodeContent {
        groups: vec![named(81, "b"), named(80, "a")],
        ..content()
    };
    world.change_node(50, both);
    let ids: Vec<Uuid> = world
        .node(50)
        .content
        .groups
        .iter()
        .map(|group| group.id)
        .collect();
    assert_eq!(ids, [uuid(80), uuid(81)]);
}

#[test]
fn a_node_names_only_what_there_is() {
    let mut world = World::new();
    world.ok(enrol(50));
    world.ok(document(60, DocumentKind::Chassis));
    world.ok(document(61, DocumentKind::Runbook));
    let in_chassis = |number: u128| NodeContent {
        chassis: Some(id(number)),
        ..NodeContent::default()
    };
    for content in [
        in_chassis(61),
        in_chassis(62),
        NodeContent {
            parent: Some(id(99)),
            ..NodeContent::default()
        },
    ] {
        let op = world.change(50, content);
        assert_eq!(world.refused(op), ErrorCode::NotFound);
    }
    world.change_node(50, in_chassis(60));
    let nodes: Vec<MachineId> = query::chassis_nodes(&world.tables, uuid(60)).collect();
    assert_eq!(nodes, [id(50)]);
}

/// The inventory says where a card is; it does not keep the node that described it from other changes.
#[test]
fn a_card_that_moved_away_does_not_lock_its_node() {
    let mut world = World::new();
    world.boot(2, "boot-1");
    world.change_node(2, with_card(3));
    world.boot(3, "boot-1");
    assert_eq!(query::card_machine(&world.tables, mac(3)), Some(id(3)));
    let more = NodeContent {
        description: "text".into(),
        ..with_card(3)
    };
    world.change_node(2, more);
    world.change_node(2, NodeContent::default());
    let again = world.change(2, with_card(3));
    assert_eq!(world.refused(again), ErrorCode::AlreadyExists);
    world.change_node(3, with_card(3));
}
