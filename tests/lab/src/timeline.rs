//! What a lab tells its user, step by step as it happens, and the table at the end.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    log: PathBuf,
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

/// Prints a line. A reader that went away is no reason to stop: what was built has to be taken
/// away again.
pub fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}

impl Timeline {
    /// Runs one step and tells how long it took; `log` is what to read when it fails.
    ///
    /// # Errors
    /// The step's own.
    pub fn step<T>(&self, name: &str, log: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = self.started.elapsed();
        say(&format!("{:>6.1}s  {name}", begin.as_secs_f64()));
        let result = work();
        let took = self.started.elapsed() - begin;
        if took > Duration::from_secs(1) || result.is_err() {
            let mark = if result.is_ok() { "done" } else { "FAILED" };
            self.note(&format!("{mark} in {:.1} s", took.as_secs_f64()));
        }
        let (name, log, ok) = (name.to_owned(), log.to_owned(), result.is_ok());
        self.steps().push(Step {
            name,
            log,
            begin,
            took,
            ok,
        });
        result
    }

    /// Something that happened inside a step.
    pub fn note(&self, text: &str) {
        say(&format!(
            "{:>6.1}s    - {text}",
            self.started.elapsed().as_secs_f64()
        ));
    }

    /// Name and log of the innermost step that failed.
    #[must_use]
    pub fn failed_step(&self) -> Option<(String, PathBuf)> {
        let steps = self.steps();
        steps
            .iter()
            .find(|s| !s.ok)
            .map(|s| (s.name.clone(), s.log.clone()))
    }

    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Every step with its begin and duration.
    pub fn table(&self) {
        let mut steps = self.steps().clone();
        // A step ends after those inside it.
        steps.sort_by_key(|s| s.begin);
        let width = steps
            .iter()
            .map(|s| s.name.chars().count())
            .max()
            .unwrap_or(0)
            .max(4);
        say(&format!(
            "\n  {:<width$}  {:>8}  {:>8}",
            "step", "begin", "took"
        ));
        for step in steps.iter() {
            let mark = if step.ok { "" } else { "  FAILED" };
            let (begin, took) = (step.begin.as_secs_f64(), step.took.as_secs_f64());
            say(&format!(
                "  {:<width$}  {begin:>6.1} s  {took:>6.1} s{mark}",
                step.name
            ));
        }
        let all = self.started.elapsed().as_secs_f64();
        say(&format!("  {:<width$}  {:>8}  {all:>6.1} s", "all", ""));
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
