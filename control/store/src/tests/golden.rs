//! Golden files: what a node has on its disk is read by every later program.
//!
//! `golden/rows` has a row of every kind, `golden/commands` a log record of every operation.
//! `golden/log.backup` is a log, and `golden/state.backup` the state that it leads to. The files
//! come from `tests-scenario`, which has every operation. They are frozen: none is ever made anew.
//! The files of a new kind or operation are added beside them with
//!
//! ```text
//! GOLDEN=add cargo test -p control-store golden
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ciborium::Value;
use control_state::{
    AuditEntry, AuditPhase, Change, Command, FEATURE_LEVEL, Kind, Op, Record, Tables,
};
use proto_backup::{Encryption, FORMAT, Head, Item, Reader, Recipients, Writer};
use tests_scenario::Step;

use super::restore::Rows;
use super::tables::{propose, tenant};
use super::*;
use crate::machine::StateRow;
use crate::tables::{row_key, row_value};
use crate::{StateMachine, StateRestore, codec};

/// Machines of the scenario.
const MACHINES: u32 = 20;
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// Key of a row in the log that the cluster was restored with; other keys are of commands.
const RESTORED: &[u8] = b"row/";

/// What the scenario shows of the formats.
#[derive(Default)]
struct Samples {
    /// The largest row of each kind.
    rows: BTreeMap<String, Vec<u8>>,
    /// The largest log record of each operation.
    commands: BTreeMap<String, Vec<u8>>,
    log: Rows,
    /// The state at the end of the log.
    state: Rows,
    revision: u64,
}

fn keep_largest(samples: &mut BTreeMap<String, Vec<u8>>, name: &str, bytes: Vec<u8>) {
    let kept = samples.entry(name.to_owned()).or_default();
    if bytes.len() > kept.len() {
        *kept = bytes;
    }
}

/// The command with every optional field of its envelope.
fn enveloped(command: &Command) -> Command {
    let call = AuditEntry {
        sequence: 0,
        id: "call".to_owned(),
        time: command.now,
        ended: None,
        user: "ada".to_owned(),
        tenant: "acme".to_owned(),
        project: Some("web".to_owned()),
        method: "m".to_owned(),
        body: Some("{}".to_owned()),
        source_ip: "192.0.2.1".to_owned(),
        result_code: None,
        phase: AuditPhase::Call,
        rule: Some("night/console".to_owned()),
        count: None,
        hash: None,
    };
    command.clone().traced(TRACE.to_owned()).called(call)
}

fn row(record: &Record, revision: u64) -> (Vec<u8>, Vec<u8>) {
    let key = row_key(record.kind(), &record.key());
    (key, row_value(record, revision).unwrap())
}

fn samples() -> Samples {
    let history = tests_scenario::run(MACHINES, &mut |_, _, _| Ok(())).unwrap();
    let mut samples = Samples::default();
    let mut tables = Tables::new();
    for (number, step) in history.iter().enumerate() {
        let command = match step {
            Step::Command(command) => command,
            Step::Loaded(record, revision) => {
                let (key, value) = row(record, *revision);
                StateMachine::load(&mut tables, &key, &value).unwrap();
                samples.log.push(([RESTORED, &key].concat(), value));
                continue;
            }
        };
        let record = codec::encode(command).unwrap();
        let key = format!("log/{number:05}").into_bytes();
        samples.log.push((key, record));
        let sample = codec::encode(&enveloped(command)).unwrap();
        keep_largest(&mut samples.commands, command.op.name(), sample);
        for change in StateMachine::apply(&mut tables, command).changes {
            let StateRow { value, .. } = row_of(&tables, &change);
            if let Some(value) = value {
                keep_largest(&mut samples.rows, change.kind.as_str(), value);
            }
        }
    }
    samples.revision = Tables::revision(&tables);
    let records = Kind::ALL.iter().flat_map(|kind| tables.records(*kind));
    samples.state = records
        .map(|(record, revision)| row(&record, revision))
        .collect();
    samples
}

fn row_of(tables: &Tables, change: &Change) -> StateRow {
    StateMachine::row(tables, change).unwrap()
}

fn to_backup(rows: &Rows, revision: u64) -> Vec<u8> {
    let head = Head {
        format: FORMAT,
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        made_at_ms: 1_000_000_000,
        cluster: "test".to_owned(),
        cluster_id: uuid::Uuid::from_u128(1).to_string(),
        node: 1,
        term: 1,
        revision,
        feature_level: 1,
        encryption: Encryption::None,
    };
    let mut writer = Writer::new(Vec::new(), head, &Recipients::parse([]).unwrap()).unwrap();
    for (key, value) in rows {
        writer.row(key, value).unwrap();
    }
    writer.finish().unwrap().0
}

/// Every golden file, as the scenario makes it today.
fn made_today() -> BTreeMap<PathBuf, Vec<u8>> {
    let samples = samples();
    let revision = samples.revision;
    let rows = samples.rows.into_iter();
    let rows = rows.map(|(kind, bytes)| (Path::new("rows").join(kind), bytes));
    let commands = samples.commands.into_iter();
    let commands = commands.map(|(name, bytes)| (Path::new("commands").join(name), bytes));
    let log = ("log.backup".into(), to_backup(&samples.log, revision));
    let state = ("state.backup".into(), to_backup(&samples.state, revision));
    rows.chain(commands).chain([log, state]).collect()
}

fn golden(name: impl AsRef<Path>) -> PathBuf {
    // `tests/store-seams` has these tests, too.
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../control/store/src/tests");
    tests.join("golden").join(name)
}

/// Writes the files that are missing when `GOLDEN=add` is set, else names them.
#[test]
fn every_kind_and_operation_has_a_golden_file() {
    let files = made_today();
    let kinds = Kind::ALL.iter().map(|kind| kind.as_str());
    let kinds = kinds.map(|kind| Path::new("rows").join(kind));
    let operations = Op::NAMES
        .iter()
        .map(|name| Path::new("commands").join(name));
    let unseen: Vec<_> = kinds
        .chain(operations)
        .filter(|name| !files.contains_key(name))
        .collect();
    assert!(unseen.is_empty(), "tests-scenario does not make {unseen:?}");

    let adds = std::env::var("GOLDEN").is_ok_and(|wanted| wanted == "add");
    let mut missing = Vec::new();
    for (name, bytes) in files {
        let path = golden(&name);
        if path.exists() {
            continue;
        }
        if adds {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        } else {
            missing.push(name);
        }
    }
    let hint = "GOLDEN=add cargo test -p control-store golden";
    assert!(missing.is_empty(), "{missing:?} are missing: {hint}");
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
fn golden_rows_lose_nothing() {
    for (kind, frozen) in files("rows") {
        let mut tables = Tables::new();
        let key = format!("{kind}/golden");
        StateMachine::load(&mut tables, key.as_bytes(), &frozen).unwrap();
        let kind: Kind = kind.parse().unwrap();
        let (record, revision) = tables.records(kind).next().unwrap();
        let now = row_value(&record, revision).unwrap();
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
        if let Some(row) = key.strip_prefix(RESTORED) {
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
    let target = StateRestore {
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
