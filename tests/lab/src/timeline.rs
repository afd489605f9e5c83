//! What a lab tells its user, step by step as it happens, and the table at the end.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps of a run. Prints to standard output.
#[derive(Debug)]
pub struct Timeline {
    started: Instant,
    steps: Mutex<Vec<Step>>,
}

#[derive(Clone, Debug)]
struct Step {
    name: String,
    begin: Duration,
    took: Duration,
    ok: bool,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            steps: Mutex::new(Vec::new()),
        }
    }
}

#[expect(clippy::print_stdout, reason = "a program that talks to its user")]
impl Timeline {
    /// Runs one step and tells how long it took.
    ///
    /// # Errors
    /// The step's own.
    pub fn step<T>(&self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = self.started.elapsed();
        println!("{:>7.1}s  {name} …", begin.as_secs_f64());
        let result = work();
        let took = self.started.elapsed() - begin;
        let mark = if result.is_ok() { "ok" } else { "FAILED" };
        println!(
            "{:>7.1}s  {name}: {mark} ({:.1} s)",
            self.started.elapsed().as_secs_f64(),
            took.as_secs_f64()
        );
        if let Ok(mut steps) = self.steps.lock() {
            steps.push(Step {
                name: name.to_owned(),
                begin,
                took,
                ok: result.is_ok(),
            });
        }
        result
    }

    /// Something that happened inside a step.
    pub fn note(&self, text: &str) {
        println!("{:>7.1}s    {text}", self.started.elapsed().as_secs_f64());
    }

    /// The last step that was begun and failed.
    #[must_use]
    pub fn failed_step(&self) -> Option<String> {
        let steps = self.steps.lock().ok()?;
        steps.iter().rev().find(|s| !s.ok).map(|s| s.name.clone())
    }

    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Every step with its begin and duration.
    pub fn table(&self) {
        let Ok(steps) = self.steps.lock() else { return };
        let width = steps
            .iter()
            .map(|s| s.name.chars().count())
            .max()
            .unwrap_or(0)
            .max(4);
        println!("\n  {:<width$}  {:>8}  {:>8}", "step", "begin", "took");
        for step in steps.iter() {
            let mark = if step.ok { "" } else { "  FAILED" };
            println!(
                "  {:<width$}  {:>6.1} s  {:>6.1} s{mark}",
                step.name,
                step.begin.as_secs_f64(),
                step.took.as_secs_f64()
            );
        }
        println!(
            "  {:<width$}  {:>8}  {:>6.1} s",
            "all",
            "",
            self.started.elapsed().as_secs_f64()
        );
    }
}
