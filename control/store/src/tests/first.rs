//! Compatibility: this version reads rows and commands of the first version.
//!
//! `first/state.backup` has one object at least of every kind that the first version kept, as its
//! rows: made by the tests of control-state at commit 4dfb6d1. `first/log.backup` has the
//! commands that led there, as its log had them. Neither is ever made anew; when the format of
//! rows or commands changes, files of that version come beside them.

use std::collections::BTreeSet;
use std::sync::Arc;

use control_state::{AuditEntry, Command, EventLog, Kind, Machine, Record, Tables};
use proto_backup::{Head, Item, Reader};

use super::restore::Rows;
use super::tables::{propose, tenant};
use super::*;
use crate::{StateMachine, StateRestore, codec};

const STATE: &[u8] = include_bytes!("first/state.backup");
const LOG: &[u8] = include_bytes!("first/log.backup");

fn rows(backup: &[u8]) -> (Head, Rows) {
    let mut reader = Reader::open(backup, None).unwrap();
    let mut rows = Vec::new();
    while let Some(item) = reader.item().unwrap() {
        let Item::Row { key, value } = item else {
            panic!("a plain backup has rows alone")
        };
        rows.push((key, value));
    }
    (reader.head().clone(), rows)
}

/// Kinds that came after the first version.
const NEWER: [&str; 15] = [
    "control-node",
    "quota",
    "invite",
    "component",
    "audit-anchor",
    "user",
    "audit-export",
    "policy",
    "vpn-member",
    "identity",
    "ca-rotation",
    "cooling-number",
    "pool-cursor",
    "cluster-clock",
    "settings",
];

/// Commands that a later rule refuses: hammer gets no certificate while its machine is powered off
/// for a reclaim.
const REFUSED_NOW: [&str; 1] = ["log/00038"];

#[tokio::test(flavor = "multi_thread")]
async fn its_state_is_restored_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (head, rows) = rows(STATE);
    assert!(
        rows.iter().all(|(_, value)| value[0] == 1),
        "rows of version 1"
    );
    let target = StateRestore {
        dir: dir.path().join("new"),
        cluster: "test".to_owned(),
        node_id: 1,
        term: head.term,
        revision: head.revision,
        made_at: None,
    };
    let count = rows.len();
    let rows = rows.into_iter().map(Ok::<_, std::convert::Infallible>);
    target.run(rows).await.unwrap();
    let store: Store = Store::open(config(&target.dir)).await.unwrap();
    let kinds: BTreeSet<Kind> = store
        .read(|tables| tables.dump().map(|record| record.kind()).collect())
        .await
        .unwrap();
    let missing: Vec<Kind> = Kind::ALL
        .iter()
        .filter(|kind| !kinds.contains(kind) && **kind != Kind::BmcOrder)
        .copied()
        .collect();
    assert!(
        missing.iter().all(|kind| NEWER.contains(&kind.as_str())),
        "the first version had no {missing:?}"
    );
    let machines = store.read(|tables| {
        let machines: Vec<u64> = tables
            .all::<Machine>()
            .map(|machine| tables.revision_of::<Machine>(&machine.id).unwrap())
            .collect();
        (tables.dump().count(), machines)
    });
    assert_eq!(machines.await.unwrap(), (count, vec![0; 3]));
    propose(&store, tenant("new")).await.unwrap();
    store.shutdown().await;
}

/// A record without what later rules add to it; `None` for one that only one of both has: of a kind
/// that the first version did not know, or what a command made that is refused now.
fn as_first(record: Record) -> Option<Record> {
    Some(match record {
        Record::Machine(machine) => {
            let mut machine = Machine::clone(&machine);
            machine.first_mac = None;
            if let Some(allocation) = &mut machine.allocation {
                allocation.events_before = 0;
            }
            Record::Machine(Arc::new(machine))
        }
        Record::EventLog(log) => Record::EventLog(Arc::new(EventLog {
            told: Vec::new(),
            recorded: 0,
            ..EventLog::clone(&log)
        })),
        Record::Certificate(certificate) if certificate.allocation.is_none() => return None,
        // It is made of the revision, which counts one command less.
        Record::AuditEntry(entry) => Record::AuditEntry(Arc::new(AuditEntry {
            sequence: 0,
            ..AuditEntry::clone(&entry)
        })),
        Record::CoolingNumber(_) | Record::PoolCursor(_) => return None,
        other => other,
    })
}

#[test]
fn its_commands_still_lead_there() {
    let (_, commands) = rows(LOG);
    let (head, rows) = rows(STATE);
    let mut tables = Tables::new();
    for (key, command) in commands {
        let command: Command = codec::decode(&command).unwrap();
        let outcome = StateMachine::apply(&mut tables, &command);
        let key = String::from_utf8_lossy(&key).into_owned();
        let is_refused = REFUSED_NOW.contains(&key.as_str());
        assert_eq!(
            outcome.result.is_err(),
            is_refused,
            "{key}: {:?}",
            outcome.result
        );
    }
    let refused = u64::try_from(REFUSED_NOW.len()).unwrap();
    assert_eq!(Tables::revision(&tables), head.revision - refused);
    let mut stored = Tables::new();
    for (key, value) in &rows {
        StateMachine::load(&mut stored, key, value).unwrap();
    }
    let now: Vec<Record> = tables.dump().filter_map(as_first).collect();
    assert_eq!(now, stored.dump().filter_map(as_first).collect::<Vec<_>>());
}
