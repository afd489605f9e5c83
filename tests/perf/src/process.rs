//! Server processes: started so that they cannot outlive the bench, however it ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::procfs;

/// Bytes of a log that an error repeats.
const TAIL_BYTES: usize = 2000;
/// How long the end of a killed process is waited for.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(5);

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: u32,
    log: PathBuf,
}

impl Process {
    /// Starts `arguments`, the first of which is the program; its output goes to `log`.
    ///
    /// `setpriv` has the kernel kill it when the bench itself is killed. That is tied to the
    /// thread that starts it, so only the main thread may call this.
    pub(crate) fn start(arguments: &[String], log: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot run setpriv")?;
        let pid = child.id().context("the server ended at once")?;
        Ok(Self {
            child,
            pid,
            log: log.to_owned(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Fails when it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let log = std::fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(TAIL_BYTES)..];
        bail!("a server ended ({status}):\n{}", tail.escape_ascii_lines())
    }

    /// Waits until it ends by itself; an error unless it ended well.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        if self.child.wait().await?.success() {
            return Ok(());
        }
        self.check()
    }

    /// kill -9, and waits for its end.
    pub(crate) async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}

impl Drop for Process {
    /// Waits for its end, as its files are about to be removed. Its children go with it: not all
    /// servers see to that themselves when they are killed.
    fn drop(&mut self) {
        let until = Instant::now() + END_TIMEOUT;
        let family = procfs::family(&[self.pid]).unwrap_or_default();
        if self.child.start_kill().is_err() {
            return;
        }
        let children = family.into_iter().filter(|pid| *pid != self.pid);
        for pid in children.filter_map(|pid| i32::try_from(pid).ok()) {
            // One that has ended already is what is wanted.
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(END_POLL);
        }
    }
}

trait EscapeLines {
    fn escape_ascii_lines(&self) -> String;
}

impl EscapeLines for [u8] {
    fn escape_ascii_lines(&self) -> String {
        let lines = self.split(|byte| *byte == b'\n');
        let lines = lines.map(|line| format!("    {}", line.escape_ascii()));
        lines.collect::<Vec<_>>().join("\n")
    }
}
