//! Runs vtysh, FRR's own shell.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::error::FrrError;

/// Bytes of commands that one run is given, about 1,500 lines: far below what the system allows
/// (2 MiB, 128 KiB in one argument), so that a run ends well within its time.
pub(super) const ARGUMENTS_MAX: usize = 64 * 1024;

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

/// Output of one run, complete.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
}

impl Default for Vtysh {
    /// The host's FRR; 20 s and 32 MiB. With 500 VRFs and 6,000 prefixes a run took up to 1.3 s
    /// and printed 0.7 MiB.
    fn default() -> Self {
        Self {
            command: vec!["vtysh".to_owned()],
            timeout: Duration::from_secs(20),
            output_max: 32 << 20,
        }
    }
}

impl Vtysh {
    /// Runs commands, each argument one or several lines. FRR stops at the first that it refuses.
    pub(super) async fn run(&self, echo: bool, commands: &[String]) -> Result<Output, FrrError> {
        let mut arguments = Vec::from_iter(echo.then(|| "-E".to_owned()));
        for lines in commands {
            arguments.extend(["-c".to_owned(), lines.clone()]);
        }
        self.start(&arguments, None).await
    }

    /// Loads lines of configuration as from a file. FRR commits what belongs together at once,
    /// which is much faster: one of its commits alone takes longer the more filters there are. It
    /// goes on after a refused line.
    pub(super) async fn load(&self, text: String) -> Result<Output, FrrError> {
        let arguments = ["-f".to_owned(), "/dev/stdin".to_owned()];
        self.start(&arguments, Some(text)).await
    }

    async fn start(&self, arguments: &[String], input: Option<String>) -> Result<Output, FrrError> {
        let run = tokio::time::timeout(self.timeout, self.process(arguments, input));
        run.await.map_err(|_| FrrError::Timeout(self.timeout))?
    }

    async fn process(
        &self,
        arguments: &[String],
        input: Option<String>,
    ) -> Result<Output, FrrError> {
        let (program, first) = self.command.split_first().ok_or_else(|| FrrError::Run {
            command: String::new(),
            source: std::io::ErrorKind::InvalidInput.into(),
        })?;
        let failed = |source| FrrError::Run {
            command: program.clone(),
            source,
        };
        let piped = if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let mut child = Command::new(program)
            .args(first)
            .args(arguments)
            .stdin(piped)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        let write = async {
            if let (Some(mut stdin), Some(text)) = (stdin, input) {
                // A vtysh that ends early says why on its other side.
                stdin.write_all(text.as_bytes()).await.ok();
            }
            Ok(())
        };
        // Together: a full pipe would stop the others.
        let (out, err, ()) = tokio::try_join!(
            self.read(child.stdout.take()),
            self.read(child.stderr.take()),
            write
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
        let read = pipe
            .take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .await;
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
