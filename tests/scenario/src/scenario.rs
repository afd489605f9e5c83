//! A state, a clock, and commands written as JSON.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use control_state::{ClusterClock, Command, Op, Record, Restored, Tables, apply};
use proto_types::{Digest, MacAddr, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

/// Looks at a command before it is applied.
pub type Sink<'a> = &'a mut dyn FnMut(&mut Tables, Timestamp, &Op) -> Result<()>;

/// A change of the scenario's state.
#[derive(Debug)]
pub enum Step {
    /// A command that was applied.
    Command(Command),
    /// A record that was loaded as if it had been stored, with its revision.
    Loaded(Record, u64),
}

/// Commands that are applied to one state, in order.
pub(crate) struct Scenario<'a> {
    tables: Tables,
    now: Timestamp,
    sink: Sink<'a>,
    history: Vec<Step>,
}

impl<'a> Scenario<'a> {
    pub(crate) fn new(sink: Sink<'a>) -> Self {
        Self {
            tables: Tables::new(),
            now: Timestamp::from_ms(1_000_000_000),
            sink,
            history: Vec::new(),
        }
    }

    /// Every change so far, in order.
    pub(crate) fn into_history(self) -> Vec<Step> {
        self.history
    }

    /// Milliseconds of the clock, with so many more.
    pub(crate) fn after(&self, ms: u64) -> u64 {
        self.now.plus_ms(ms).ms()
    }

    pub(crate) fn later(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Marks the state as restored, as only a restore does.
    ///
    /// # Errors
    /// When the mark cannot be written.
    pub(crate) fn restore(&mut self) -> Result<()> {
        let clock = ClusterClock {
            restored: Some(Restored {
                made_at: self.now,
                revision: self.tables.revision(),
            }),
            ..ClusterClock::at(self.now)
        };
        let record = Record::ClusterClock(Arc::new(clock));
        let (bytes, revision) = (record.encode()?, self.tables.revision());
        self.tables.load(record.kind(), &bytes, revision)?;
        self.history.push(Step::Loaded(record, revision));
        Ok(())
    }

    /// Applies a command.
    ///
    /// # Errors
    /// When it is no command, or refused.
    pub(crate) fn done(&mut self, op: Value) -> Result<()> {
        let op = read(op)?;
        self.apply(op)
    }

    /// Shows a command, then applies it.
    ///
    /// # Errors
    /// When it is no command, or refused.
    pub(crate) fn row(&mut self, op: Value) -> Result<()> {
        let op = read(op)?;
        (self.sink)(&mut self.tables, self.now, &op)?;
        self.apply(op)
    }

    fn apply(&mut self, op: Op) -> Result<()> {
        let name = op.name();
        let command = Command::new(self.now, "bench", op);
        let outcome = apply(&mut self.tables, &command);
        outcome.result.map_err(|error| anyhow!("{name}: {error}"))?;
        self.history.push(Step::Command(command));
        Ok(())
    }
}

fn read(op: Value) -> Result<Op> {
    let name = op.as_object().and_then(|it| it.keys().next()).cloned();
    serde_json::from_value(op).with_context(|| name.unwrap_or_default())
}

pub(crate) fn id(number: u128) -> String {
    Uuid::from_u128(number).to_string()
}

pub(crate) fn digest(byte: u8) -> String {
    Digest::sha256([byte; 32]).to_string()
}

pub(crate) fn mac(number: u32) -> String {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddr([0x52, 0x54, a, b, c, d]).to_string()
}

/// Other labels of something.
pub(crate) fn relabelled() -> Value {
    json!({"replace": {"key": "value"}})
}
