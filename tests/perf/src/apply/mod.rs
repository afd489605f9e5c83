//! The time that one command holds the state's lock: each with the largest input that is
//! accepted, and with the largest that is refused.
//!
//! A scenario applies every command once, to a data centre of many machines. Before a command is
//! applied as it is, it is grown (`grow`) and tried: `attempt` carries it out and takes it back.

mod grow;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use control_state::{Command, Op, Tables, attempt, bounds};
use control_store::COMMAND_BYTES_MAX;
use proto_types::Timestamp;
use serde_json::{Map, Value, json};

use grow::Grown;

/// Longest time that one command may hold the lock, milliseconds.
const MS_MAX: f64 = 10.0;
/// Each command is tried so often; the median counts.
const ROUNDS: usize = 9;

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Machines of the data centre
    #[arg(long, default_value_t = 1_000)]
    machines: u32,
    /// Only commands whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// table, or json: the last line alone
    #[arg(short, long, default_value = "table")]
    output: String,
}

/// Times of one command, milliseconds, and its sizes in bytes of JSON.
#[derive(Debug)]
struct Row {
    name: &'static str,
    /// As the scenario has it.
    plain_ms: f64,
    /// The largest that was accepted, in the worse of two shapes.
    accepted_ms: f64,
    accepted_bytes: usize,
    /// The largest that the bounds let through, whatever came of it.
    bounded_ms: f64,
    bounded_bytes: usize,
}

impl Row {
    fn worst_ms(&self) -> f64 {
        self.plain_ms.max(self.accepted_ms).max(self.bounded_ms)
    }
}

#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) fn run(args: &ApplyArgs) -> Result<()> {
    let mut measured = Vec::new();
    let mut sink = |tables: &mut Tables, now, op: &Op| {
        let wanted = args.only.as_ref();
        if wanted.is_none_or(|part| op.name().contains(part.as_str())) {
            measured.push(measure(tables, now, op)?);
        }
        Ok(())
    };
    let _history = tests_scenario::run(args.machines, &mut sink)?;
    measured.sort_by(|a: &Row, b| b.worst_ms().total_cmp(&a.worst_ms()));
    // Some commands come more than once: the worst time counts.
    let mut seen = BTreeSet::new();
    measured.retain(|row| seen.insert(row.name));
    if args.output != "json" {
        println!("{}", table(&measured)?);
    }
    let missed: Vec<&str> = measured
        .iter()
        .filter(|row| row.worst_ms() > MS_MAX)
        .map(|row| row.name)
        .collect();
    println!("{}", report(args.machines, &measured, &missed));
    ensure!(missed.is_empty(), "missed: {}", missed.join(", "));
    Ok(())
}

fn measure(tables: &mut Tables, now: Timestamp, op: &Op) -> Result<Row> {
    let Some(name) = Op::NAMES.iter().find(|name| **name == op.name()) else {
        bail!("{} is no command", op.name());
    };
    let fits = |grown: &Grown| grown.bytes <= COMMAND_BYTES_MAX && bounds::check(&grown.op).is_ok();
    let mut row = Row {
        name,
        plain_ms: time(tables, now, op),
        accepted_ms: 0.0,
        accepted_bytes: 0,
        bounded_ms: 0.0,
        bounded_bytes: 0,
    };
    for shape in grow::SHAPES {
        let accepted = grow::grown(op, shape, &mut |grown| {
            fits(grown) && attempt(tables, &command(now, &grown.op)).is_ok()
        })?;
        row.accepted_ms = row.accepted_ms.max(time(tables, now, &accepted.op));
        row.accepted_bytes = row.accepted_bytes.max(accepted.bytes);
        let bounded = grow::grown(op, shape, &mut |grown| fits(grown))?;
        row.bounded_ms = row.bounded_ms.max(time(tables, now, &bounded.op));
        row.bounded_bytes = row.bounded_bytes.max(bounded.bytes);
    }
    Ok(row)
}

fn command(now: Timestamp, op: &Op) -> Command {
    Command::new(now, "bench", op.clone())
}

/// Median time of a trial, milliseconds; one that takes long is not repeated.
fn time(tables: &mut Tables, now: Timestamp, op: &Op) -> f64 {
    let command = command(now, op);
    let mut taken = Vec::new();
    let begin = Instant::now();
    while taken.len() < ROUNDS && begin.elapsed() < Duration::from_secs(1) {
        let round = Instant::now();
        let _outcome = std::hint::black_box(attempt(tables, &command));
        taken.push(round.elapsed());
    }
    taken.sort();
    taken[taken.len() / 2].as_secs_f64() * 1e3
}

fn table(rows: &[Row]) -> Result<String> {
    let mut text = format!(
        "{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}\n",
        "UNDER THE LOCK, MS", "PLAIN", "LARGEST", "KIB", "BOUNDED", "KIB", "<="
    );
    for row in rows {
        writeln!(
            text,
            "{:<26} {:>9.3} {:>9.3} {:>9.1} {:>9.3} {:>9.1} {MS_MAX:>6}{}",
            row.name,
            row.plain_ms,
            row.accepted_ms,
            row.accepted_bytes as f64 / 1024.0,
            row.bounded_ms,
            row.bounded_bytes as f64 / 1024.0,
            if row.worst_ms() > MS_MAX {
                "  MISSED"
            } else {
                ""
            }
        )?;
    }
    Ok(text)
}

fn report(machines: u32, rows: &[Row], missed: &[&str]) -> Value {
    let figures: Map<String, Value> = rows
        .iter()
        .map(|row| {
            let value = json!({
                "plain_ms": row.plain_ms,
                "largest_ms": row.accepted_ms, "largest_bytes": row.accepted_bytes,
                "bounded_ms": row.bounded_ms, "bounded_bytes": row.bounded_bytes,
            });
            (row.name.to_owned(), value)
        })
        .collect();
    json!({ "bench": "apply", "machines": machines, "ms_max": MS_MAX, "figures": figures, "missed": missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_row_and_is_accepted_as_it_is() {
        let mut seen = BTreeSet::new();
        let mut sink = |tables: &mut Tables, now, op: &Op| {
            if let Err(error) = attempt(tables, &command(now, op)) {
                bail!("{}: {error}", op.name());
            }
            seen.insert(op.name());
            Ok(())
        };
        tests_scenario::run(20, &mut sink).unwrap();
        let missing: Vec<_> = Op::NAMES.iter().filter(|it| !seen.contains(*it)).collect();
        assert!(missing.is_empty(), "without a row: {missing:?}");
    }
}
