//! Golden files: what a node has on its disk is read by every later program.
//!
//! `golden/rows` has a row of every kind, `golden/commands` a log record of every operation.
//! `golden/log.backup` is a log, and `golden/state.backup` the state that it leads to. The files are
//! frozen: none is ever made anew. Those of a new kind or operation come beside them, with
//! `GOLDEN=add cargo test -p tests-perf golden`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ciborium::Value;
use control_state::{Command, FEATURE_LEVEL, Kind, Op, Tables};
use proto_backup::{Head, Item, Reader};

use super::restore::Rows;
use super::tables::{propose, tenant};
use super::*;
use crate::{Restore, StateMachine, codec, tables as rows_of};

fn golden(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests");
    tests.join("golden").join(name)
}

/// The files of a folder by their names.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(golden(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

fn backup(name: &str) -> (Head, Rows) {
    let bytes = std::fs::read(golden(name)).unwrap();
    let mut reader = Reader::open(&bytes[..], None).unwrap();
    let mut rows = Vec::new();
    while let Some(item) = reader.item().unwrap() {
        let Item::Row { key, value } = item else {
            panic!("a plain backup has rows alone")
        };
        rows.push((key, value));
    }
    (reader.head().clone(), rows)
}

fn value(cbor: &[u8]) -> Value {
    ciborium::from_reader(cbor).unwrap()
}

/// `true` if `now` says everything that `frozen` says. A later program may add fields, but it may
/// not lose or change one.
fn keeps(now: &Value, frozen: &Value) -> bool {
    match (now, frozen) {
        (Value::Map(now), Value::Map(frozen)) => frozen.iter().all(|(key, old)| {
            let mut same = now.iter().filter(|(name, _)| name == key);
            same.any(|(_, new)| keeps(new, old))
        }),
        (Value::Array(now), Value::Array(frozen)) => {
            let mut pairs = now.iter().zip(frozen);
            now.len() == frozen.len() && pairs.all(|(new, old)| keeps(new, old))
        }
        _ => now == frozen,
    }
}

#[test]
fn every_kind_and_operation_has_a_golden_file() {
    let names = |folder: &str| files(folder).into_iter().map(|(name, _)| name);
    let kinds: BTreeSet<String> = Kind::ALL.iter().map(ToString::to_string).collect();
    let operations: BTreeSet<String> = Op::NAMES.iter().map(ToString::to_string).collect();
    let hint = "GOLDEN=add cargo test -p tests-perf golden";
    assert_eq!(names("rows").collect::<BTreeSet<_>>(), kinds, "{hint}");
    assert_eq!(
        names("commands").collect::<BTreeSet<_>>(),
        operations,
        "{hint}"
    );
}

#[test]
fn golden_rows_lose_nothing() {
    for (kind, frozen) in files("rows") {
        let mut tables = Tables::new();
        let key = format!("{kind}/golden");
        StateMachine::load(&mut tables, key.as_bytes(), &frozen).unwrap();
        let kind: Kind = kind.parse().unwrap();
        let (record, revision) = tables.records(kind).next().unwrap();
        let now = rows_of::row_value(&record, revision).unwrap();
        assert_eq!(now[..9], frozen[..9], "{kind}: version and revision");
        let (now, frozen) = (value(&now[9..]), value(&frozen[9..]));
        assert!(keeps(&now, &frozen), "{kind}: {frozen:?} became {now:?}");
    }
}

#[test]
fn golden_commands_lose_nothing() {
    for (name, frozen) in files("commands") {
        let command = <Tables as StateMachine>::read(&frozen).unwrap();
        assert_eq!(command.op.name(), name);
        assert!(command.version <= FEATURE_LEVEL, "{name}");
        let now = codec::encode(&command).unwrap();
        assert_eq!(now[0], frozen[0], "{name}: version");
        let (now, frozen) = (value(&now[1..]), value(&frozen[1..]));
        assert!(keeps(&now, &frozen), "{name}: {frozen:?} became {now:?}");
    }
}

#[test]
fn what_is_lost_or_changed_is_found() {
    let field = |name: &str, value: u8| (Value::from(name), Value::from(value));
    let map = |fields: &[(Value, Value)]| Value::Array(vec![Value::Map(fields.to_vec())]);
    let frozen = map(&[field("a", 1), field("b", 2)]);
    assert!(keeps(
        &map(&[field("b", 2), field("c", 3), field("a", 1)]),
        &frozen
    ));
    assert!(!keeps(&map(&[field("a", 1)]), &frozen));
    assert!(!keeps(&map(&[field("a", 1), field("b", 3)]), &frozen));
}

#[test]
fn the_golden_log_leads_to_the_golden_state() {
    let (_, log) = backup("log.backup");
    let (head, rows) = backup("state.backup");
    let mut tables = Tables::new();
    for (key, bytes) in log {
        let name = String::from_utf8_lossy(&key).into_owned();
        // A row in the log is one that the cluster was restored with.
        if let Some(row) = key.strip_prefix(b"row/") {
            StateMachine::load(&mut tables, row, &bytes).unwrap();
            continue;
        }
        let command: Command = <Tables as StateMachine>::read(&bytes).unwrap();
        let outcome = StateMachine::apply(&mut tables, &command);
        assert!(outcome.result.is_ok(), "{name}: {:?}", outcome.result);
    }
    assert_eq!(Tables::revision(&tables), head.revision);
    let mut stored = Tables::new();
    for (key, row) in &rows {
        StateMachine::load(&mut stored, key, row).unwrap();
    }
    for kind in Kind::ALL {
        let now: Vec<_> = tables.records(*kind).collect();
        assert_eq!(now, stored.records(*kind).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_golden_state_is_restored_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (head, rows) = backup("state.backup");
    // Nodes of the old cluster are not restored.
    let is_kept = |key: &[u8]| !key.starts_with(b"control-node/");
    let count = rows.iter().filter(|(key, _)| is_kept(key)).count();
    let target = Restore {
        dir: dir.path().join("new"),
        cluster: "test".to_owned(),
        node_id: 1,
        term: head.term,
        revision: head.revision,
        made_at: None,
    };
    let rows = rows.into_iter().map(Ok::<_, std::convert::Infallible>);
    target.run(rows).await.unwrap();
    let store: Store = Store::open(config(&target.dir)).await.unwrap();
    let kept = store.read(|tables| tables.dump().count()).await.unwrap();
    assert_eq!(kept, count);
    propose(&store, tenant("new")).await.unwrap();
    store.shutdown().await;
}
