//! Long-running programs of a lab: started in a namespace, logged, recorded, watched.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::state::{ProcessId, Record};
use crate::wait::{Fatal, wait_for};

/// Lines of a log that an error shows.
const TAIL: usize = 8;
/// How long a process may take to end.
const END: Duration = Duration::from_secs(10);

/// A program that runs until the lab ends.
#[derive(Clone, Debug)]
pub struct Process {
    id: ProcessId,
    log: PathBuf,
}

impl Process {
    /// Starts a program; its output goes to the log of its name.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(record: &Record, name: &str, mut command: Command) -> Result<Self> {
        let log = record.log(name)?;
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)?;
        let program = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C is for the lab, which ends its programs in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let id = ProcessId::of(name, i32::try_from(child.id())?)?;
        record.update(|s| {
            s.processes.retain(|p| p.name != name);
            s.processes.push(id.clone());
        })?;
        Ok(Self { id, log })
    }

    /// One that an earlier process of this lab started.
    #[must_use]
    pub fn existing(record: &Record, name: &str) -> Option<Self> {
        let state = record.state();
        let id = state.processes.into_iter().find(|p| p.name == name)?;
        Some(Self {
            id,
            log: record.log(name).ok()?,
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.id.name
    }

    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        self.id.pid
    }

    #[must_use]
    pub fn alive(&self) -> bool {
        self.id.alive()
    }

    /// # Errors
    /// It has ended; the last lines of its log are the reason.
    pub fn check(&self) -> Result<()> {
        if self.alive() {
            return Ok(());
        }
        let text = format!("{} ended: {}", self.id.name, tail(&self.log));
        Err(Fatal(text).into())
    }

    pub fn signal(&self, signal: Signal) {
        self.id.signal(signal);
    }

    /// kill -9, and waits until it is gone.
    ///
    /// # Errors
    /// It does not go.
    pub fn kill(&self) -> Result<()> {
        self.end_by(Signal::SIGKILL)
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(&self) -> Result<()> {
        self.end_by(Signal::SIGTERM)
    }

    fn end_by(&self, signal: Signal) -> Result<()> {
        self.id.signal(signal);
        let pid = Pid::from_raw(self.id.pid);
        wait_for(&format!("end of {}", self.id.name), END, || {
            // A child can only be reaped when its last thread is gone, and its sockets with it;
            // it counts as dead before that.
            Ok(match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => None,
                Ok(_) => Some(()),
                Err(_) => (!self.alive()).then_some(()),
            })
        })
    }
}

/// The last lines of a log, in one line.
#[must_use]
pub fn tail(log: &Path) -> String {
    let text = fs::read(log)
        .map(|b| String::from_utf8_lossy(&b).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(TAIL);
    lines.get(from..).unwrap_or_default().join(" | ")
}

/// Runs a program to its end; what it printed.
///
/// # Errors
/// It cannot be started or fails; what it printed to standard error is the reason.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        let reason = if reason.trim().is_empty() {
            text.as_str().into()
        } else {
            reason
        };
        bail!("{}", reason.trim());
    }
    Ok(text)
}
