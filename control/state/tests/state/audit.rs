//! The audit trail: records with their changes, and the chain over them.

use control_state::{
    AUDIT_DROP, AUDIT_MAX, AppendAudit, AuditAnchor, AuditEntry, AuditHash, AuditPhase,
    AuditRetention, Command, Kind, SetSettings, Tables, Tenant, apply,
};
use proto_types::TenantId;

use crate::world::{World, tenant};

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
        count: None,
        hash: None,
    }
}

fn append(count: usize) -> AppendAudit {
    let entries = (0..count).map(|number| entry(number, AuditPhase::Call));
    AppendAudit {
        entries: entries.collect(),
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
    let chain = chain.filter(|entry| entry.sequence > anchor.sequence);
    chain
        .map(|entry| {
            previous = entry.line().hash(&previous);
            assert_eq!(entry.hash, Some(previous), "{entry:?}");
        })
        .count()
}

fn head(tables: &Tables) -> Option<AuditHash> {
    tables.all::<AuditEntry>().next_back()?.hash
}

#[test]
fn a_change_and_its_record_are_one() {
    let mut world = World::empty();
    let call = entry(1, AuditPhase::Call);
    let command = Command::new(world.now, "ada", tenant("acme", None)).called(call.clone());
    let outcome = apply(&mut world.tables, &command);
    let kinds: Vec<_> = outcome.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [Kind::Tenant, Kind::AuditEntry, Kind::AuditAnchor]);
    let kept = world.tables.all::<AuditEntry>().next().unwrap();
    assert_eq!((kept.result_code, kept.phase), (Some(0), AuditPhase::Call));
    assert_eq!(kept.ended, Some(world.now));

    // Refused: neither change nor record.
    let before = world.tables.state_hash().unwrap();
    let again = Command::new(world.now, "ada", tenant("acme", None)).called(call);
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
fn each_record_is_chained_to_the_one_before() {
    let mut world = World::empty();
    world.ok(append(4));
    assert_eq!(chained(&world.tables), 4);
    let first = head(&world.tables);
    world.ok(append(1));
    assert_eq!(chained(&world.tables), 5);
    assert_ne!(head(&world.tables), first);
}

#[test]
fn retention_moves_the_anchor() {
    let mut world = World::empty();
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

fn by(user: &str, number: usize) -> AuditEntry {
    AuditEntry {
        user: user.into(),
        ..entry(number, AuditPhase::Call)
    }
}

#[test]
fn one_caller_does_not_displace_the_records_of_others() {
    let mut world = World::empty();
    for number in 0..300 {
        let entries = vec![by("ada", number), by("bob", number)];
        world.ok(AppendAudit { entries });
    }
    for batch in 0..(AUDIT_MAX + 5_000) / 100 {
        let flood = (0..100).map(|number| by("eve", batch * 100 + number));
        world.ok(AppendAudit {
            entries: flood.collect(),
        });
    }
    let kept = |user: &str| {
        let all = world.tables.all::<AuditEntry>();
        all.filter(|record| record.user == user).count()
    };
    assert_eq!((kept("ada"), kept("bob")), (300, 300));
    assert!(world.tables.all::<AuditEntry>().count() <= AUDIT_MAX + 2 * AUDIT_DROP);
}

fn gaps(tables: &Tables) -> Vec<&AuditEntry> {
    let all = tables.all::<AuditEntry>().map(AsRef::as_ref);
    all.filter(|record| record.phase == AuditPhase::Dropped)
        .collect()
}

/// The chain over its gaps, and the newest record that tells of them.
fn verified(tables: &Tables) {
    let anchor = tables.get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let mut previous = anchor.unwrap().hash;
    let (mut seen, mut told) = (proto_types::AuditGaps::default(), None);
    for record in tables.all::<AuditEntry>() {
        if record.phase == AuditPhase::Dropped {
            previous = record.hash.unwrap();
            seen.add(record.sequence, record.count.unwrap(), &previous);
            continue;
        }
        previous = record.line().hash(&previous);
        assert_eq!(record.hash, Some(previous));
        if record.method == proto_types::RETENTION_METHOD {
            assert_eq!(told.replace(seen.told()), None, "one record tells of gaps");
            assert_eq!(record.body, told);
        }
    }
    assert_eq!(told, (!seen.is_empty()).then(|| seen.told()));
}

#[test]
fn what_was_dropped_from_the_middle_leaves_the_chain_whole() {
    let mut world = World::empty();
    for number in 0..200 {
        // Eve's lie between those of the others.
        let flood = (0..99).map(|of| by("eve", 99 * number + of));
        let entries = flood.chain([by("ada", number)]);
        world.ok(AppendAudit {
            entries: entries.collect(),
        });
        if number % 20 == 0 {
            verified(&world.tables);
        }
    }
    verified(&world.tables);
    let kept = gaps(&world.tables);
    assert!(!kept.is_empty() && kept.len() <= 201, "{}", kept.len());
    let anchor = world
        .tables
        .get::<AuditAnchor>(&AuditAnchor::TRAIL.to_owned());
    let dropped: u64 = kept.iter().map(|gap| u64::from(gap.count.unwrap())).sum();
    let records = world.tables.all::<AuditEntry>().count() - kept.len();
    // Records of retention were written and dropped as well.
    assert!(anchor.unwrap().dropped + dropped + records as u64 >= 20_000);
    assert!(records <= AUDIT_MAX + 2 * AUDIT_DROP, "{records}");
}

#[test]
fn what_a_place_has_not_read_is_kept_up_to_the_hard_bound() {
    let mut world = World::empty();
    world.ok(append(100));
    let read = world.tables.all::<AuditEntry>().next_back().unwrap();
    let mark = |sequence| control_state::MarkAuditExport {
        name: "siem".into(),
        sequence,
        missed: 0,
    };
    let read = mark(read.sequence);
    world.ok(read);
    world.ok(SetSettings {
        audit: Some(AuditRetention {
            records_max: 1_000,
            unread_max: 3_000,
            age_max_ms: None,
        }),
        budgets: None,
    });
    let records = |world: &World| world.tables.all::<AuditEntry>().count();
    for _ in 0..24 {
        world.ok(append(100));
    }
    assert_eq!(records(&world), 2_400, "only what was read went");
    for _ in 0..40 {
        world.ok(append(100));
    }
    assert!((3_000..=3_000 + AUDIT_DROP).contains(&records(&world)));
    // Once it has read all, the plain bound holds again; what is too much goes in steps.
    let last = world.tables.all::<AuditEntry>().next_back().unwrap();
    let all = mark(last.sequence);
    world.ok(all);
    for _ in 0..4 {
        world.tick(1_000);
    }
    assert!((1_000..=1_000 + AUDIT_DROP).contains(&records(&world)));
    verified(&world.tables);
    // A place that is gone from the configuration holds nothing back.
    world.ok(control_state::ForgetAuditExport {
        name: "siem".into(),
    });
    for _ in 0..10 {
        world.ok(append(100));
    }
    assert!(records(&world) <= 1_000 + AUDIT_DROP);
}

#[test]
fn records_go_with_their_age() {
    let mut world = World::empty();
    let old = |world: &World, count: usize| {
        let time = world.now;
        let record = move |number| AuditEntry {
            time,
            ..entry(number, AuditPhase::Call)
        };
        AppendAudit {
            entries: (0..count).map(record).collect(),
        }
    };
    let op = old(&world, 50);
    world.ok(op);
    world.later(3_600_000);
    let op = old(&world, 50);
    world.ok(op);
    let hour = AuditRetention {
        age_max_ms: Some(3_600_000),
        ..AuditRetention::default()
    };
    world.ok(SetSettings {
        audit: Some(hour),
        budgets: None,
    });
    world.tick(1_000);
    assert_eq!(world.tables.all::<AuditEntry>().count(), 50);
    verified(&world.tables);
    let none = AuditRetention {
        records_max: 0,
        ..hour
    };
    let refused = world.refused(SetSettings {
        audit: Some(none),
        budgets: None,
    });
    assert_eq!(refused, control_state::ErrorCode::InvalidField);
}
