//! Commands to QEMU's monitor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(5);
/// Events that may come before an answer.
const LINES_MAX: usize = 64;

/// A connection to the monitor of a machine.
#[derive(Debug)]
pub struct Monitor {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects to the monitor's socket. QEMU serves one connection at a time.
    ///
    /// # Errors
    /// Nobody listens, or the other side does not speak QMP.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream =
            UnixStream::connect(socket).context("the machine's monitor does not answer")?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut greeting = String::new();
        reader.read_line(&mut greeting)?;
        let mut monitor = Self { stream, reader };
        monitor.run("qmp_capabilities", None)?;
        Ok(monitor)
    }

    /// Runs a command; its result.
    ///
    /// # Errors
    /// QEMU refuses the command, or does not answer in time.
    pub fn run(&mut self, command: &str, arguments: Option<Value>) -> Result<Value> {
        let mut request = json!({"execute": command});
        if let Some(arguments) = arguments {
            request["arguments"] = arguments;
        }
        exchange(&self.stream, &mut self.reader, &request)
    }
}

/// Connects, runs one command, disconnects.
///
/// # Errors
/// Those of [`Monitor`].
pub fn call(socket: &Path, command: &str, arguments: Option<Value>) -> Result<Value> {
    Monitor::connect(socket)?.run(command, arguments)
}

fn exchange(
    mut stream: &UnixStream,
    reader: &mut BufReader<UnixStream>,
    request: &Value,
) -> Result<Value> {
    writeln!(stream, "{request}")?;
    for _ in 0..LINES_MAX {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            bail!("the monitor closed");
        }
        let answer: Value = serde_json::from_str(&line)?;
        if let Some(value) = answer.get("return") {
            return Ok(value.clone());
        }
        if let Some(error) = answer.get("error") {
            bail!("{request}: {error}");
        }
    }
    bail!("no answer to {request}")
}
