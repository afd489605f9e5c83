//! One run of the guest: QEMU, the output of its test program, its exit code.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tests_lab::wait::Budget;

use super::qemu::Qemu;

/// Written by the guest's init after the test program has ended; then its exit code.
const EXIT: &str = "metalmesh-fabric-exit ";
/// Lines of the serial log that a failure shows.
const TAIL: usize = 40;
/// How often the time limit is looked at while the guest prints nothing.
const POLL: Duration = Duration::from_millis(500);

/// One run of a guest that runs a test program.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) qemu: Qemu,
    /// On an idle machine; a busy one stretches it.
    pub(crate) limit: Duration,
}

impl Guest {
    /// Boots, passes every line of the test program to `print`, and returns its exit code.
    pub(crate) fn run(&self, mut print: impl FnMut(&str)) -> Result<i32> {
        let log = &self.qemu.log;
        let mut qemu = Running(self.qemu.spawn()?);
        let output = qemu.0.stdout.take().context("QEMU has no output")?;
        let lines = lines_of(output);
        let mut budget = Budget::new(self.limit);
        let mut exit = None;
        loop {
            match lines.recv_timeout(POLL) {
                Ok(line) => match line.strip_prefix(EXIT) {
                    Some(code) => exit = Some(code.trim().parse::<i32>()?),
                    None => print(&line),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !budget.spend() {
                bail!(
                    "the guest has not ended within {} s; its serial log ends:\n{}",
                    self.limit.as_secs(),
                    tail(log)
                );
            }
        }
        let status = qemu.0.wait()?;
        exit.with_context(|| {
            format!(
                "the guest ended without an exit code of the test (QEMU: {status}); its serial \
                 log ends:\n{}",
                tail(log)
            )
        })
    }
}

/// QEMU; ended with the value.
#[derive(Debug)]
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself after a run that came to its end.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The lines of a stream, from a thread that ends with it.
pub(super) fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if sender.send(line.trim_end().to_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

/// The last lines of a log.
pub(super) fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let from = lines.len().saturating_sub(TAIL);
    lines[from..].join("\n")
}
