//! External commands as data, and the runner that executes them.
//!
//! Planners return lists of `Cmd`; tests compare them, the runner executes them. Secrets must not
//! be arguments, which every process can read in /proc; pass them through `stdin`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Bytes kept of a failed command's output: its end, where tools print the error.
const OUTPUT_KEPT_MAX: usize = 600;
/// Search path for the tools of the initramfs.
pub(crate) const PATH: &str = "/usr/bin:/usr/sbin:/bin:/sbin";

/// One run of an external program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cmd {
    /// Name, looked up in `PATH`, or an absolute path.
    pub program: String,
    /// Arguments, without the program's name. Never secrets.
    pub args: Vec<String>,
    /// Text for standard input. `None` means `/dev/null`.
    pub stdin: Option<String>,
    /// `true` if a failure ends the list of commands that it is in.
    pub must_succeed: bool,
}

/// The failure of an external command.
#[derive(Debug, thiserror::Error)]
pub enum CmdError {
    /// The program is missing, or its standard input or output failed.
    #[error("cannot start {program}")]
    Start {
        /// The program's name.
        program: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The program ended with a status other than 0, or by a signal.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// The program's name.
        program: String,
        /// The exit status as text.
        status: String,
        /// End of standard error, or of standard output if that is empty.
        output: String,
    },
    /// The program ran longer than its limit and was killed.
    #[error("{program} did not end within {limit:?}")]
    Timeout {
        /// The program's name.
        program: String,
        /// The limit.
        limit: Duration,
    },
}

impl Cmd {
    /// A command that must succeed, without standard input.
    pub fn new<S: Into<String>>(program: &str, args: impl IntoIterator<Item = S>) -> Self {
        Self {
            program: program.to_string(),
            args: args.into_iter().map(Into::into).collect(),
            stdin: None,
            must_succeed: true,
        }
    }

    /// Allows the command to fail, such as the removal of a thing that may not exist.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.must_succeed = false;
        self
    }

    /// The command as a shell line without quoting; for logs and tests.
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = self.program.clone();
        for arg in &self.args {
            out.push(' ');
            out.push_str(arg);
        }
        out
    }

    /// Runs the command and returns its standard output.
    ///
    /// # Errors
    /// When the program cannot start, fails, or runs longer than `limit`; it is killed then.
    pub async fn run(&self, limit: Duration) -> Result<String, CmdError> {
        tracing::debug!(command = self.line(), "running");
        let program = || self.program.clone();
        let start = |source| CmdError::Start {
            program: program(),
            source,
        };
        let stdin = if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .env("PATH", PATH)
            // Outputs are parsed: no translations, no local number formats.
            .env("LC_ALL", "C")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A timeout or a reboot order drops the future; a tool that went on writing to the
            // disk then would race with the next attempt.
            .kill_on_drop(true)
            .spawn()
            .map_err(start)?;
        let pipe = child.stdin.take();
        let feed = async {
            match (&self.stdin, pipe) {
                (Some(text), Some(mut pipe)) => pipe.write_all(text.as_bytes()).await,
                _ => Ok(()),
            }
        };
        // At the same time: a program that prints much before it has read its input would wait for
        // us while we wait for it.
        let both = async {
            let (fed, output) = tokio::join!(feed, child.wait_with_output());
            fed.and(output)
        };
        let output = tokio::time::timeout(limit, both)
            .await
            .map_err(|_| CmdError::Timeout {
                program: program(),
                limit,
            })?
            .map_err(start)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let text = if stderr.trim().is_empty() {
            stdout.as_str()
        } else {
            &stderr
        };
        Err(CmdError::Failed {
            program: program(),
            status: output.status.to_string(),
            output: tail(text.trim(), OUTPUT_KEPT_MAX).to_string(),
        })
    }
}

/// Runs commands in order. The failure of an optional command is logged at debug level.
///
/// # Errors
/// The first failure of a command that must succeed; the rest is not run.
pub async fn run_all(cmds: &[Cmd], limit: Duration) -> Result<(), CmdError> {
    for cmd in cmds {
        match cmd.run(limit).await {
            Ok(_) => {}
            Err(error) if cmd.must_succeed => return Err(error),
            Err(error) => tracing::debug!(%error, "optional command failed"),
        }
    }
    Ok(())
}

/// The last `max` bytes of a text or fewer, starting at a character boundary.
pub(crate) fn tail(text: &str, max: usize) -> &str {
    let mut start = text.len().saturating_sub(max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn output_failure_and_timeout() {
        assert_eq!(
            Cmd::new("echo", ["a", "b"]).run(LIMIT).await.unwrap(),
            "a b\n"
        );
        let error = Cmd::new("sh", ["-c", "echo no >&2; exit 3"])
            .run(LIMIT)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no"), "{error}");
        let error = Cmd::new("sleep", ["60"])
            .run(Duration::from_millis(50))
            .await
            .unwrap_err();
        assert!(matches!(error, CmdError::Timeout { .. }));
        let error = Cmd::new("/no/such/program", [""; 0])
            .run(LIMIT)
            .await
            .unwrap_err();
        assert!(matches!(error, CmdError::Start { .. }));
    }

    #[tokio::test]
    async fn a_command_that_does_not_read_its_input_ends_at_the_limit() {
        let deaf = Cmd {
            // More than a pipe holds.
            stdin: Some("x".repeat(1 << 20)),
            ..Cmd::new("sleep", ["60"])
        };
        let run = tokio::time::timeout(LIMIT, deaf.run(Duration::from_millis(50)));
        let error = run.await.unwrap().unwrap_err();
        assert!(matches!(error, CmdError::Timeout { .. }), "{error}");
        let echo = Cmd {
            program: "cat".into(),
            args: Vec::new(),
            ..deaf
        };
        assert_eq!(echo.run(LIMIT).await.unwrap().len(), 1 << 20);
    }

    #[tokio::test]
    async fn optional_commands_do_not_stop_the_rest() {
        let cmds = [
            Cmd::new("false", [""; 0]).optional(),
            Cmd::new("true", [""; 0]),
        ];
        run_all(&cmds, LIMIT).await.unwrap();
        assert!(run_all(&[Cmd::new("false", [""; 0])], LIMIT).await.is_err());
    }

    #[test]
    fn tails_end_at_characters() {
        assert_eq!(tail("aäb", 2), "b");
        assert_eq!(tail("abc", 9), "abc");
    }
}
