//! A metalmeshd of its own for the integration targets.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// One control node on loopback, at ports that were free. It ends with its owner.
#[derive(Debug)]
pub(super) struct DevServer {
    process: Child,
    folder: TempDir,
    /// Kept open: the server may print more.
    _output: BufReader<ChildStdout>,
    /// URL of the API.
    pub(super) url: String,
}

impl DevServer {
    /// Starts a server and waits until it is ready.
    ///
    /// # Errors
    /// It cannot be started, or ends before.
    pub(super) fn start(program: &Path) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut process = Command::new(program)
            .args(["--dev", "--api-listen", "127.0.0.1:0"])
            .args(["--mesh-listen", "127.0.0.1:0", "--token-file"])
            .arg(folder.path().join("token"))
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.path().join("log"))?)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let output = process.stdout.take().context("metalmeshd has no output")?;
        let mut output = BufReader::new(output);
        let address = ready(&mut output);
        let Some(address) = address else {
            process.kill().ok();
            process.wait().ok();
            let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            bail!("metalmeshd did not become ready: {}", log.trim());
        };
        Ok(Self {
            process,
            folder,
            _output: output,
            url: format!("http://{address}"),
        })
    }

    /// The admin token.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn token(&self) -> Result<String> {
        let token = fs::read_to_string(self.folder.path().join("token"))?;
        Ok(token.trim().to_owned())
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        // It has nothing to keep: its data directory goes too.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The address of the API in the line by which the server says that it is ready.
fn ready(output: &mut BufReader<ChildStdout>) -> Option<String> {
    output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| address(&line))
}

fn address(line: &str) -> Option<String> {
    let rest = line.strip_prefix("ready api=")?;
    rest.split_whitespace().next().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn ready_lines() {
        let line = "ready api=127.0.0.1:40001 mesh=127.0.0.1:40002";
        assert_eq!(address(line).as_deref(), Some("127.0.0.1:40001"));
        assert_eq!(address("admin token: /tmp/token"), None);
    }
}
