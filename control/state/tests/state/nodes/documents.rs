//! Documents: chassis, deploy templates, runbooks, and ports of the network API.

use super::*;
use crate::leases::OWNER;

fn of_project(number: u128, kind: DocumentKind, name: &str) -> SetNodeDocument {
    SetNodeDocument {
        owner: Some(id(OWNER)),
        name: name.to_owned(),
        ..document(number, kind)
    }
}

#[test]
fn a_document_is_replaced_as_a_whole() {
    let mut world = World::new();
    let op = of_project(60, DocumentKind::Runbook, "CUSTOM_FIX");
    let made = world.ok(op.clone()).node_document().unwrap();
    assert_eq!((made.meta.generation, made.public), (1, false));
    assert_eq!(world.refused(op.clone()), ErrorCode::Conflict);
    let changed = SetNodeDocument {
        expected: 1,
        owner: None,
        public: true,
        fields: [("steps".to_owned(), "[]".to_owned())].into(),
        ..op.clone()
    };
    let made = world.ok(changed.clone()).node_document().unwrap();
    assert_eq!((made.meta.generation, made.public), (2, true));
    assert_eq!(made.owner, None);
    let other_kind = SetNodeDocument {
        kind: DocumentKind::Chassis,
        expected: 2,
        ..changed
    };
    assert_eq!(world.refused(other_kind), ErrorCode::InvalidField);
    let delete = DeleteNodeDocument { id: id(60) };
    let last = world.ok(delete.clone()).node_document().unwrap();
    assert_eq!(last.meta.generation, 2);
    assert_eq!(world.refused(delete), ErrorCode::NotFound);
    assert_eq!(
        query::documents(&world.tables, DocumentKind::Runbook).count(),
        0
    );
}

#[test]
fn names_are_unique_where_they_are_traits() {
    let mut world = World::new();
    for (kind, repeats) in [
        (DocumentKind::DeployTemplate, false),
        (DocumentKind::Runbook, false),
        (DocumentKind::Chassis, false),
        (DocumentKind::NetworkPort, true),
    ] {
        let first = 100 + kind as u128 * 10;
        world.ok(of_project(first, kind, "CUSTOM_A"));
        let second = of_project(first + 1, kind, "CUSTOM_A");
        match repeats {
            true => drop(world.ok(second)),
            false => assert_eq!(world.refused(second), ErrorCode::AlreadyExists, "{kind}"),
        }
        // Without a name there is nothing to be unique.
        world.ok(of_project(first + 2, kind, ""));
        world.ok(of_project(first + 3, kind, ""));
        let found = query::document_named(&world.tables, kind, "CUSTOM_A").unwrap();
        assert_eq!(found.id, uuid(first), "{kind}");
        assert_eq!(found.kind, kind);
        let count = query::documents(&world.tables, kind).count();
        assert_eq!(count, 3 + usize::from(repeats), "{kind}");
        let own = query::project_documents(&world.tables, Some(id(OWNER)), kind);
        assert_eq!(own.count(), count, "{kind}");
        let of_site = query::project_documents(&world.tables, None, kind);
        assert_eq!(of_site.count(), 0, "{kind}");
    }
}

#[test]
fn documents_beyond_their_bounds_are_refused() {
    let mut world = World::new();
    type Change = fn(&mut SetNodeDocument);
    let cases: [(Change, ErrorCode); 5] = [
        (|op| op.owner = Some(id(9)), ErrorCode::NotFound),
        (|op| op.name = "x".repeat(256), ErrorCode::InvalidField),
        (|op| op.name = "a\tb".into(), ErrorCode::InvalidField),
        (
            |op| op.fields = [("x".repeat(256), String::new())].into(),
            ErrorCode::InvalidField,
        ),
        (
            |op| {
                let field = |number: u8| (number.to_string(), "x".repeat(14_000));
                op.fields = (0..5).map(field).collect();
            },
            ErrorCode::InvalidField,
        ),
    ];
    for (at, (change, code)) in cases.into_iter().enumerate() {
        let mut op = document(60, DocumentKind::NetworkPort);
        change(&mut op);
        assert_eq!(world.refused(op), code, "case {at}");
    }
}

#[test]
fn an_owner_has_so_many_documents_of_a_kind() {
    let mut world = World::new();
    let kind = DocumentKind::NetworkPort;
    let made = world.ok(of_project(1, kind, "")).node_document().unwrap();
    // As if they had been made one by one.
    for number in 2..=NODE_DOCUMENTS_MAX {
        let other = NodeDocument {
            id: uuid(number as u128),
            ..NodeDocument::clone(&made)
        };
        let record = Record::NodeDocument(other.into());
        let bytes = record.encode().unwrap();
        world.tables.load(record.kind(), &bytes, 1).unwrap();
    }
    let mut world = World::of(world.tables, world.now);
    assert_eq!(
        world.refused(of_project(5_000, kind, "")),
        ErrorCode::TooMany
    );
    // Other kinds and owners have room, and its own it still changes.
    world.ok(of_project(5_000, DocumentKind::Runbook, ""));
    world.ok(document(5_001, kind));
    let renamed = SetNodeDocument {
        expected: 1,
        ..of_project(7, kind, "web")
    };
    world.ok(renamed);
    let to_owner = SetNodeDocument {
        expected: 1,
        ..of_project(5_001, kind, "")
    };
    assert_eq!(world.refused(to_owner), ErrorCode::TooMany);
}

#[test]
fn a_chassis_with_nodes_stays() {
    let mut world = World::new();
    world.ok(document(60, DocumentKind::Chassis));
    world.ok(EnrolNode {
        content: NodeContent {
            chassis: Some(id(60)),
            ..NodeContent::default()
        },
        ..enrol(50)
    });
    let delete = DeleteNodeDocument { id: id(60) };
    let error = world.error(delete.clone());
    assert_eq!(error.code, ErrorCode::StillInUse);
    let node: MachineId = id(50);
    assert!(error.message.contains(&node.to_string()), "{error}");
    world.change_node(50, NodeContent::default());
    world.ok(delete);
}

#[test]
fn documents_of_a_project_end_with_it() {
    let mut world = World::new();
    for (number, kind) in (60..).zip(DocumentKind::ALL) {
        world.ok(of_project(number, kind, ""));
    }
    world.ok(document(70, DocumentKind::Runbook));
    world.ok(EnrolNode {
        content: NodeContent {
            chassis: Some(id(60)),
            ..NodeContent::default()
        },
        ..enrol(50)
    });
    world.ok(DeleteProject { id: id(OWNER) });
    assert_eq!(world.node(50).content.chassis, None);
    let left: Vec<Uuid> = world
        .tables
        .all::<NodeDocument>()
        .map(|document| document.id)
        .collect();
    assert_eq!(left, [uuid(70)]);
}
