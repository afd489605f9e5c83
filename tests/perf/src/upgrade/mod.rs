//! A rolling upgrade of three nodes while many clients write: how long nothing was acknowledged, and
//! whether a call failed or was lost.
//!
//! `site` is the nodes, which are restarted one by one with the other program, `writers` the clients.
//!
//! Invariants: everything stays on loopback; nothing is set that the product does not set; the order
//! is that of `metalmesh cluster upgrade plan`: followers, a new leader, the former leader.

mod site;
mod writers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::place::{self, Output};
use crate::table::table;
use site::Site;
use writers::{Part, Writers};

/// The longest time without an acknowledged write that a rolling upgrade may cost.
const PAUSE_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// Clients that write at the same time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=150))]
    writers: u16,
    /// Seconds before the first step and after each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// The output at the end
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Where the data lies while it runs
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The program that all nodes run before
    #[arg(long)]
    metalmeshd: PathBuf,
    /// The program that all nodes run afterwards
    #[arg(long)]
    next: PathBuf,
}

/// A step of the timeline.
struct Row {
    step: String,
    /// Start of the step, since the writers began.
    at: Duration,
    part: Part,
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "step": self.step, "at_s": self.at.as_secs_f64(),
            "pause_ms": ms(self.part.pause), "writes": self.part.acknowledged,
            "retries": self.part.retries, "failed": self.part.failed,
        })
    }

    fn cells(&self) -> [String; 6] {
        [
            self.step.clone(),
            format!("{:.1}", self.at.as_secs_f64()),
            format!("{:.0}", ms(self.part.pause)),
            self.part.acknowledged.to_string(),
            self.part.retries.to_string(),
            self.part.failed.to_string(),
        ]
    }
}

/// Measures and reports.
#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) async fn run(args: UpgradeArgs) -> Result<()> {
    let place = place::make("upgrade", args.dir.as_deref())?;
    let mut site = Site::form(&args.metalmeshd, place.path()).await?;
    let before = site.feature_level().await?;
    let writers = Writers::start(&site.addresses(), site.token(), args.writers).await?;
    let rows = timeline(&mut site, &writers, &args).await?;
    let lost = writers.finish(&site.addresses()).await?;
    let after = site.feature_level().await?;
    let pause = rows.iter().map(|row| row.part.pause).max();
    let pause = pause.unwrap_or_default();
    let failed: usize = rows.iter().map(|row| row.part.failed).sum();
    if args.output == Output::Table {
        let header = [
            "",
            "at, s",
            "longest pause, ms",
            "writes",
            "retries",
            "failed",
        ];
        println!(
            "{}",
            table(header.map(str::to_owned), rows.iter().map(Row::cells))
        );
    }
    let lines: Vec<Value> = rows.iter().map(Row::json).collect();
    println!(
        "{}",
        json!({
            "bench": "upgrade", "writers": args.writers, "level_before": before,
            "level_after": after, "longest_pause_ms": ms(pause), "failed": failed,
            "lost": lost, "rows": lines,
        })
    );
    ensure!(lost == 0, "{lost} acknowledged writes were lost");
    let missed = missed(pause, failed);
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed: {}", missed.join("; "))
}

/// Goes through all steps; one row for the time before, and one for each step.
async fn timeline(site: &mut Site, writers: &Writers, args: &UpgradeArgs) -> Result<Vec<Row>> {
    let began = Instant::now();
    let settle = Duration::from_secs(args.seconds);
    let leader = site.leader().await?;
    let followers: Vec<usize> = site.nodes().filter(|at| *at != leader).collect();
    let successor = *followers.first().unwrap_or(&leader);
    let steps = followers
        .iter()
        .map(|at| Step::Upgrade(*at))
        .chain([Step::Lead(successor), Step::Upgrade(leader)]);
    let mut rows = Vec::new();
    for step in [Step::Nothing].into_iter().chain(steps) {
        eprintln!("{:>4} s  {}", began.elapsed().as_secs(), step.title());
        let at = began.elapsed();
        match step {
            Step::Nothing => {}
            Step::Upgrade(node) => site.restart(node, &args.next).await?,
            Step::Lead(node) => site.lead(node).await?,
        }
        tokio::time::sleep(settle).await;
        rows.push(Row {
            step: step.title(),
            at,
            part: writers.take_part(),
        });
    }
    Ok(rows)
}

/// A step, by the position of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Upgrade(usize),
    Lead(usize),
}

impl Step {
    fn title(self) -> String {
        match self {
            Self::Nothing => "before".to_owned(),
            Self::Upgrade(at) => format!("node {} is upgraded", at + 1),
            Self::Lead(at) => format!("node {} leads", at + 1),
        }
    }
}

/// Targets that were missed.
fn missed(pause: Duration, failed: usize) -> Vec<String> {
    let mut missed = Vec::new();
    if pause > PAUSE_MAX {
        let (pause, most) = (ms(pause), PAUSE_MAX.as_secs());
        missed.push(format!("a pause of {pause:.0} ms, and not {most} s"));
    }
    if failed > 0 {
        missed.push(format!("{failed} calls failed"));
    }
    missed
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_pause_and_a_failed_call_miss_the_target() {
        assert!(missed(PAUSE_MAX, 0).is_empty());
        assert_eq!(missed(PAUSE_MAX * 2, 0).len(), 1);
        assert_eq!(missed(PAUSE_MAX * 2, 1).len(), 2);
    }

    #[test]
    fn a_row_has_its_figures() {
        let row = Row {
            step: Step::Upgrade(1).title(),
            at: Duration::from_millis(1500),
            part: Part {
                acknowledged: 7,
                retries: 2,
                failed: 0,
                pause: Duration::from_millis(250),
            },
        };
        let cells = ["node 2 is upgraded", "1.5", "250", "7", "2", "0"];
        assert_eq!(row.cells(), cells.map(str::to_owned));
        assert_eq!(row.json()["writes"], 7);
    }
}
