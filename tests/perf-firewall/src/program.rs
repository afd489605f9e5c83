//! Programs that are measured from outside: wall time and processor time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// The cost of something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Wall time, milliseconds.
    pub(crate) wall_ms: f64,
    /// Processor time, user and system, milliseconds.
    pub(crate) cpu_ms: f64,
}

/// Runs a program to its end. Its processor time is that of the only child that ends meanwhile.
pub(crate) fn cost_of(mut command: Command) -> Result<Cost> {
    let before = processor_ms(UsageWho::RUSAGE_CHILDREN)?;
    let began = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("cannot run a program")?;
    let wall_ms = ms(began.elapsed());
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {errors}");
    Ok(Cost {
        wall_ms,
        cpu_ms: processor_ms(UsageWho::RUSAGE_CHILDREN)? - before,
    })
}

/// Runs work on this thread.
pub(crate) fn cost_here<T>(work: impl FnOnce() -> Result<T>) -> Result<(Cost, T)> {
    let before = thread_ms()?;
    let began = Instant::now();
    let result = work()?;
    let wall_ms = ms(began.elapsed());
    let cpu_ms = thread_ms()? - before;
    Ok((Cost { wall_ms, cpu_ms }, result))
}

/// A time in milliseconds.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Processor time of this thread so far, milliseconds. The usage of a thread is known at ticks only.
fn thread_ms() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(ms(Duration::from(time)))
}

/// Processor time so far, milliseconds.
#[expect(clippy::cast_precision_loss, reason = "microseconds of a bench")]
fn processor_ms(of: UsageWho) -> Result<f64> {
    let usage = getrusage(of)?;
    let (user, system) = (usage.user_time(), usage.system_time());
    let us = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Ok((us(user) + us(system)) as f64 / 1000.0)
}
