//! Runs vtysh, FRR's own shell.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::error::FrrError;

/// Most bytes of commands that one run is given; a single argument of a program may have 128 KiB,
/// all of them 2 MiB.
pub(super) const ARGUMENTS_MAX: usize = 512 * 1024;

/// The way to FRR's shell.
#[derive(Clone, Debug)]
pub struct Vtysh {
    /// The program with its first arguments: `["vtysh"]`, `["vtysh", "-N", "leaf1"]` for daemons
    /// of that path space, `["docker", "exec", "-i", "bgp", "vtysh"]` on SONiC. Never empty.
    pub command: Vec<String>,
    /// Time that one run may take. It is killed after that.
    pub timeout: Duration,
    /// Bytes that one run may print. It is killed after that.
    pub output_max: usize,
}

/// What a run said.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
}

impl Default for Vtysh {
    /// The host's FRR; 10 s and 32 MiB, which is a configuration of 500 VRFs with thousands of
    /// prefixes each.
    fn default() -> Self {
        Self {
            command: vec!["vtysh".to_owned()],
            timeout: Duration::from_secs(10),
            output_max: 32 << 20,
        }
    }
}

impl Vtysh {
    /// Runs commands, each argument one or several lines. FRR stops at the first that it refuses.
    pub(super) async fn run(&self, echo: bool, commands: &[String]) -> Result<Output, FrrError> {
        let run = tokio::time::timeout(self.timeout, self.start(echo, commands));
        run.await.map_err(|_| FrrError::Timeout(self.timeout))?
    }

    async fn start(&self, echo: bool, commands: &[String]) -> Result<Output, FrrError> {
        let (program, first) = self.command.split_first().ok_or_else(|| FrrError::Run {
            command: String::new(),
            source: std::io::ErrorKind::InvalidInput.into(),
        })?;
        let failed = |source| FrrError::Run {
            command: program.clone(),
            source,
        };
        let mut command = Command::new(program);
        command.args(first).args(echo.then_some("-E"));
        for lines in commands {
            command.arg("-c").arg(lines);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        // Read together: a full pipe would stop the other one.
        let (out, err) = tokio::try_join!(
            self.read(child.stdout.take()),
            self.read(child.stderr.take())
        )?;
        let status = child.wait().await.map_err(failed)?;
        Ok(Output { status, out, err })
    }

    async fn read(&self, pipe: Option<impl AsyncRead + Unpin>) -> Result<String, FrrError> {
        let Some(pipe) = pipe else {
            return Ok(String::new());
        };
        let most = u64::try_from(self.output_max).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        let read = pipe.take(most.saturating_add(1)).read_to_end(&mut bytes).await;
        read.map_err(|source| FrrError::Run {
            command: "vtysh".to_owned(),
            source,
        })?;
        if bytes.len() > self.output_max {
            return Err(FrrError::TooMuchOutput(self.output_max));
        }
        // FRR prints ASCII; an operator's banner may not be.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
