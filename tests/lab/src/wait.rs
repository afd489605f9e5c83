//! Waiting for conditions, with deadlines that a busy machine stretches, and for Ctrl-C.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(200);
/// A machine so busy that it stretches deadlines by more than this has failed.
const STRETCH_MAX: f64 = 8.0;

/// From here on SIGINT, SIGTERM and SIGHUP end waits instead of the process: the first leads to
/// the clean-up, and further ones do not stop that. By handlers, not by a mask, which programs
/// that are started would inherit.
///
/// # Errors
/// The handlers cannot be set.
pub fn catch_signals() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    Ok(())
}

/// Whether the user wants out.
#[must_use]
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// The error that ends everything after Ctrl-C.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// A duration on an idle machine; on a busy one it lasts as much longer as processes wait.
#[derive(Debug)]
pub struct Budget {
    left: Duration,
    last: Instant,
    total: Duration,
}

impl Budget {
    #[must_use]
    pub fn new(total: Duration) -> Self {
        Self {
            left: total,
            last: Instant::now(),
            total,
        }
    }

    /// Takes the time since the last call off; false when nothing is left.
    pub fn spend(&mut self) -> bool {
        let now = Instant::now();
        let passed = (now - self.last).div_f64(stretch_now());
        self.last = now;
        self.left = self.left.saturating_sub(passed);
        !self.left.is_zero()
    }
}

/// The factor by which the load of this machine stretches times at the moment: 1 on an idle one.
#[must_use]
pub fn stretch_now() -> f64 {
    stretch(load(), cpus())
}

fn cpus() -> f64 {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    f64::from(u32::try_from(count).unwrap_or(1))
}

fn load() -> f64 {
    std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

fn stretch(load: f64, cpus: f64) -> f64 {
    (load / cpus).clamp(1.0, STRETCH_MAX)
}

/// Waits until `probe` returns something. What it returned as the last error is the reason when
/// the budget runs out.
///
/// # Errors
/// Out of budget, or interrupted.
pub fn wait_for<T>(
    what: &str,
    budget: Duration,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut budget = Budget::new(budget);
    let started = Instant::now();
    loop {
        let last = match probe() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(error) if error.is::<Fatal>() || error.is::<Interrupted>() => return Err(error),
            Err(error) => Some(error),
        };
        if interrupted() {
            return Err(Interrupted.into());
        }
        if !budget.spend() {
            let waited = started.elapsed().as_secs();
            let late = format!(
                "{what}: not within {} s ({waited} s on this busy machine)",
                budget.total.as_secs()
            );
            return match last {
                Some(error) => Err(error).context(late),
                None => bail!(late),
            };
        }
        std::thread::sleep(POLL);
    }
}

/// Ends a wait at once: what is waited for cannot happen any more.
#[derive(Debug)]
pub struct Fatal(pub String);

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fatal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_stretches_time_within_bounds() {
        for (load, cpus, factor) in [
            (0.0, 2.0, 1.0),
            (2.0, 2.0, 1.0),
            (8.0, 2.0, 4.0),
            (99.0, 2.0, 8.0),
        ] {
            assert!(
                (stretch(load, cpus) - factor).abs() < f64::EPSILON,
                "{load} on {cpus}"
            );
        }
    }

    #[test]
    fn the_last_error_is_the_reason() {
        let error = wait_for::<()>("x", Duration::from_millis(1), || bail!("not yet")).unwrap_err();
        assert!(format!("{error:#}").contains("not yet"));
    }

    #[test]
    fn what_cannot_happen_is_not_waited_for() {
        let forever = Duration::from_secs(3600);
        let error = wait_for::<()>("x", forever, || Err(Fatal("dead".into()).into())).unwrap_err();
        assert_eq!(error.to_string(), "dead");
    }
}
