//! Commands as data, and the one place that runs them.
//!
//! Planners return lists of `Cmd`; tests compare them, the runner executes them. No secret may
//! stand in an argument: what is secret goes through `stdin`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Most that is kept of a failed command's output.
const OUTPUT_KEPT_MAX: usize = 600;
/// Where hammer's tools lie.
pub(crate) const PATH: &str = "/usr/bin:/usr/sbin:/bin:/sbin";

/// One program run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cmd {
    pub program: String,
    pub args: Vec<String>,
    pub stdin: Option<String>,
    /// Whether a failure of it ends the step.
    pub must_succeed: bool,
}

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CmdError {
    #[error("cannot start {program}")]
    Start {
        program: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{program} failed ({status}): {output}")]
    Failed {
        program: String,
        status: String,
        output: String,
    },
    #[error("{program} did not end within {limit:?}")]
    Timeout { program: String, limit: Duration },
}

impl Cmd {
    pub fn new<S: Into<String>>(program: &str, args: impl IntoIterator<Item = S>) -> Self {
        Self {
            program: program.to_string(),
            args: args.into_iter().map(Into::into).collect(),
            stdin: None,
            must_succeed: true,
        }
    }

    /// A command that may fail, such as the removal of what may not be there.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.must_succeed = false;
        self
    }

    /// As one would type it; for logs and tests.
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = self.program.clone();
        for arg in &self.args {
            out.push(' ');
            out.push_str(arg);
        }
        out
    }

    /// Runs it and gives its standard output.
    ///
    /// # Errors
    /// When it cannot start, fails, or runs longer than `limit`; it is killed then.
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
            .env("LC_ALL", "C")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(start)?;
        if let (Some(text), Some(mut pipe)) = (&self.stdin, child.stdin.take()) {
            pipe.write_all(text.as_bytes()).await.map_err(start)?;
        }
        let output = tokio::time::timeout(limit, child.wait_with_output())
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

/// Runs commands in order; a failure of an optional one is logged at most.
///
/// # Errors
/// The first failure of a command that must succeed.
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

/// The last `max` bytes of a text, at a character boundary.
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
