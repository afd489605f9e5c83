//! Golden files: the formats on disk, frozen.
//!
//! `control/store/src/tests/golden` holds one row of every kind, one log record of every operation,
//! and a log with the state that it leads to. The tests of `control-store` read them. The files are
//! made here, from the scenario, which has every operation. A file that exists is never written
//! again: it stands for what a node has on its disk. A new kind or operation is added with
//!
//! ```text
//! GOLDEN=add cargo test -p tests-perf golden
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use control_state::{AuditEntry, AuditPhase, Command, Kind, Op, Tables};
use control_store::{StateMachine, encode_row};
use proto_backup::{Encryption, FORMAT, Head, Recipients, Writer};
use proto_types::Timestamp;

use super::rows;
use super::scenario::Step;

/// Machines of the scenario: as few as its commands need.
const MACHINES: u32 = 20;
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// What the scenario shows of the formats.
#[derive(Default)]
struct Samples {
    /// The largest row of each kind.
    rows: BTreeMap<String, Vec<u8>>,
    /// The largest log record of each operation.
    commands: BTreeMap<String, Vec<u8>>,
    /// The scenario's log. Keys tell log records and loaded rows apart.
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

/// A command with every optional field of its envelope.
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

fn samples() -> Samples {
    let history = rows::all(MACHINES, &mut |_, _, _| Ok(())).unwrap();
    let mut samples = Samples::default();
    let mut tables = Tables::new();
    for (number, step) in history.iter().enumerate() {
        match step {
            Step::Command(command) => {
                let record = encode_row(command).unwrap();
                samples
                    .log
                    .push((format!("log/{number:05}").into_bytes(), record));
                let sample = encode_row(&enveloped(command)).unwrap();
                keep_largest(&mut samples.commands, command.op.name(), sample);
                let outcome = StateMachine::apply(&mut tables, command);
                for change in outcome.changes {
                    let row = StateMachine::row(&tables, &change).unwrap();
                    if let Some(value) = row.value {
                        keep_largest(&mut samples.rows, change.kind.as_str(), value);
                    }
                }
            }
            Step::Loaded(record, revision) => {
                let change = control_state::Change {
                    kind: record.kind(),
                    key: record.key(),
                    before: None,
                    record: Some(record.clone()),
                    revision: *revision,
                };
                let row = StateMachine::row(&tables, &change).unwrap();
                let value = row.value.unwrap();
                StateMachine::load(&mut tables, &row.key, &value).unwrap();
                samples.log.push(([b"row/", &row.key[..]].concat(), value));
            }
        }
    }
    samples.revision = tables.revision();
    for kind in Kind::ALL {
        for (record, revision) in tables.records(*kind) {
            let change = control_state::Change {
                kind: *kind,
                key: record.key(),
                before: None,
                record: Some(record),
                revision,
            };
            let row = StateMachine::row(&tables, &change).unwrap();
            samples.state.push((row.key, row.value.unwrap()));
        }
    }
    samples
}

fn backup(rows: &Rows, revision: u64) -> Vec<u8> {
    let head = Head {
        format: FORMAT,
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        made_at_ms: Timestamp::from_ms(1_000_000_000).ms(),
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

/// Every golden file as the scenario makes it today.
fn files() -> BTreeMap<PathBuf, Vec<u8>> {
    let samples = samples();
    let mut files = BTreeMap::new();
    for (name, bytes) in samples.rows {
        files.insert(Path::new("rows").join(name), bytes);
    }
    for (name, bytes) in samples.commands {
        files.insert(Path::new("commands").join(name), bytes);
    }
    let revision = samples.revision;
    files.insert("log.backup".into(), backup(&samples.log, revision));
    files.insert("state.backup".into(), backup(&samples.state, revision));
    files
}

#[test]
fn golden_files_cover_every_kind_and_operation() {
    let files = files();
    let shown = |folder: &str, name: &str| files.contains_key(&Path::new(folder).join(name));
    let kinds = Kind::ALL.iter().map(|kind| kind.as_str());
    let kinds: Vec<_> = kinds.filter(|name| !shown("rows", name)).collect();
    let ops = Op::NAMES.iter().filter(|name| !shown("commands", name));
    let ops: Vec<_> = ops.collect();
    assert!(
        kinds.is_empty() && ops.is_empty(),
        "the scenario makes no row of {kinds:?} and no command {ops:?}: add them to `rows`"
    );

    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../control/store/src/tests/golden");
    let adds = std::env::var("GOLDEN").is_ok_and(|wanted| wanted == "add");
    for (name, bytes) in files {
        let path = golden.join(&name);
        if path.exists() {
            continue;
        }
        assert!(
            adds,
            "{} is missing: GOLDEN=add cargo test -p tests-perf golden",
            name.display()
        );
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}
