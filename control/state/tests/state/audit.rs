//! The audit trail: records with their changes, and the chain over them.

use control_state::{
    AUDIT_DROP, AUDIT_MAX, AnnounceNode, AppendAudit, AuditAnchor, AuditEntry, AuditHash,
    AuditPhase, Command, CreateTenant, Kind, Tables, Tenant, apply,
};
use proto_types::TenantId;

use crate::world::World;

pub(crate) fn entry(number: usize, phase: AuditPhase) -> AuditEntry {
    AuditEntry {
        sequence: 0,
        id: number.to_string(),
        time: proto_types::Timestamp::from_ms(7),
        ended: None,
        user: "ada".into(),
        tenant: String::new(),
        project: None,
        method: "m".into(),
        body: None,
        source_ip: String::new(),
        result_code: None,
        phase,
        rule: None,
        hash: None,
    }
}

fn append(count: usize) -> AppendAudit {
    let entries = (0..count).map(|number| entry(number, AuditPhase::Call));
    AppendAudit {
        entries: entries.collect(),
    }
}

/// Every control node knows this level.
fn level(world: &mut World, level: u32) {
    world.ok(AnnounceNode {
        id: 1,
        peer_address: String::new(),
        mesh_addresses: Vec::new(),
        level,
        version: String::new(),
    });
}

fn tenant(login: &str) -> CreateTenant {
    CreateTenant {
        login: login.parse().unwrap(),
        name: login.into(),
        email: String::new(),
        description: String::new(),
        avatar_url: String::new(),
        owner: None,
        labels: Default::default(),
    }
}

/// How many records of the chain fit together, from the anchor to the newest.
fn chained(tables: &Tables) -> usize {
    let anchor = tables.get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let Some(anchor) = anchor else {
        return 0;
    };
    let mut previous = anchor.hash;
    let chain = tables.all::<AuditEntry>();
    let chain = chain.filter(|it| it.sequence > anchor.sequence);
    chain
        .map(|it| {
            previous = it.line().hash(&previous);
            assert_eq!(it.hash, Some(previous), "{it:?}");
        })
        .count()
}

fn head(tables: &Tables) -> Option<AuditHash> {
    tables.all::<AuditEntry>().next_back()?.hash
}

#[test]
fn a_change_and_its_record_are_one() {
    let mut world = World::empty();
    level(&mut world, 3);
    let call = entry(1, AuditPhase::Call);
    let command = Command::new(world.now, "ada", tenant("acme")).called(call.clone());
    assert_eq!(command.version, 3);
    let outcome = apply(&mut world.tables, &command);
    let kinds: Vec<_> = outcome.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [Kind::Tenant, Kind::AuditEntry, Kind::AuditAnchor]);
    let kept = world.tables.all::<AuditEntry>().next().unwrap();
    assert_eq!((kept.result_code, kept.phase), (Some(0), AuditPhase::Call));
    assert_eq!(kept.ended, Some(world.now));

    // Refused: neither change nor record.
    let before = world.tables.state_hash().unwrap();
    let again = Command::new(world.now, "ada", tenant("acme")).called(call);
    assert!(apply(&mut world.tables, &again).result.is_err());
    assert_eq!(world.tables.state_hash().unwrap(), before);
    assert!(
        world
            .tables
            .get::<Tenant>(&"acme".parse::<TenantId>().unwrap())
            .is_some()
    );
    assert_eq!(chained(&world.tables), 1);
}

#[test]
fn the_chain_waits_for_the_slowest_node() {
    let mut world = World::empty();
    world.ok(append(2));
    level(&mut world, 2);
    world.ok(append(3));
    assert_eq!((head(&world.tables), chained(&world.tables)), (None, 0));
    level(&mut world, 3);
    assert_eq!(head(&world.tables), None, "it begins with a record");
    world.ok(append(4));
    assert_eq!(chained(&world.tables), 4);
    let all: Vec<_> = world.tables.all::<AuditEntry>().collect();
    assert!(all[..5].iter().all(|it| it.hash.is_none()), "as they were");
    let first = head(&world.tables);
    world.ok(append(1));
    assert_ne!(head(&world.tables), first);
}

#[test]
fn what_older_programs_cannot_read_is_of_a_higher_level() {
    let halves = AppendAudit {
        entries: vec![
            entry(1, AuditPhase::Request),
            entry(1, AuditPhase::Response),
        ],
    };
    let now = proto_types::Timestamp::ZERO;
    assert_eq!(Command::new(now, "audit", halves).version, 1);
    assert_eq!(Command::new(now, "audit", append(1)).version, 3);
}

#[test]
fn retention_moves_the_anchor() {
    let mut world = World::empty();
    world.ok(append(10));
    level(&mut world, 3);
    let mut heads = Vec::new();
    for _ in 0..(AUDIT_MAX + 1000) / 100 {
        world.ok(append(100));
        heads.push(head(&world.tables).unwrap());
        let kept = world.tables.all::<AuditEntry>().count();
        assert!(kept <= AUDIT_MAX + AUDIT_DROP, "{kept}");
    }
    let anchor = world
        .tables
        .get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let anchor = anchor.unwrap();
    let kept = chained(&world.tables);
    assert_eq!(
        usize::try_from(anchor.dropped).unwrap() + kept,
        AUDIT_MAX + 1000
    );
    assert!(anchor.dropped > 0);
    assert_eq!(
        world.tables.all::<AuditEntry>().count(),
        kept,
        "the oldest went first"
    );
}
