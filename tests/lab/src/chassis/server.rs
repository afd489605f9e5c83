//! Commands to a chassis: one JSON line in, one out, on a Unix socket.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::qemu::{Boot, Machine};
use crate::wait;

const TIMEOUT: Duration = Duration::from_secs(20);
const ACCEPT_POLL: Duration = Duration::from_millis(50);
/// Linux's USER_HZ, the unit of CPU times in /proc.
const TICKS_PER_S: f64 = 100.0;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    Status,
    Power(PowerChange),
    Boot(Boot),
    Fault(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerChange {
    On,
    Off,
    Cycle,
    Reset,
    /// The power button, pressed shortly.
    Press,
}

/// What breaks in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    None,
    /// Every write to the first disk fails, from the next power on.
    Writes,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub on: bool,
    pub boot: Boot,
    /// How often the power came.
    pub powered_on: u32,
    pub pid: Option<u32>,
    /// CPU time of the machine since the chassis was made, seconds.
    pub cpu_s: f64,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Status(Status),
    Error(String),
}

/// Sends one command to the chassis at that socket.
///
/// # Errors
/// Nobody answers, or the command fails.
pub fn call(socket: &Path, command: Command) -> Result<Status> {
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("no chassis at {}", socket.display()))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    writeln!(stream, "{}", serde_json::to_string(&command)?)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    match serde_json::from_str(&line)? {
        Answer::Status(status) => Ok(status),
        Answer::Error(error) => bail!("{command:?}: {error}"),
    }
}

pub(super) fn run(socket: &Path, machine: &Machine) -> Result<()> {
    drop(fs::remove_file(socket));
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    while !wait::interrupted() {
        match listener.accept() {
            Ok((stream, _)) => {
                let machine = machine.clone();
                // A slow command must not hold up the next one, above all not "off".
                std::thread::Builder::new()
                    .name("command".into())
                    .spawn(move || {
                        if let Err(error) = serve(&stream, &machine) {
                            eprintln!("command: {error:#}");
                        }
                    })?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(ACCEPT_POLL);
            }
            Err(error) => return Err(error.into()),
        }
    }
    machine.off()
}

fn serve(stream: &UnixStream, machine: &Machine) -> Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line)
        .map_err(Into::into)
        .and_then(|command| {
            eprintln!("{command:?}");
            execute(machine, command)
        }) {
        Ok(()) => Answer::Status(status(machine)),
        Err(error) => Answer::Error(format!("{error:#}")),
    };
    let mut stream = stream;
    writeln!(stream, "{}", serde_json::to_string(&answer)?)?;
    Ok(())
}

fn execute(machine: &Machine, command: Command) -> Result<()> {
    match command {
        Command::Status => Ok(()),
        Command::Boot(boot) => machine.set_boot(boot),
        Command::Fault(fault) => {
            machine.fail_writes(fault == Fault::Writes);
            Ok(())
        }
        Command::Power(PowerChange::On) => machine.on(),
        Command::Power(PowerChange::Off) => machine.off(),
        Command::Power(PowerChange::Cycle) => machine.cycle(),
        Command::Power(PowerChange::Reset) => machine.reset(),
        Command::Power(PowerChange::Press) => machine.press(),
    }
}

fn status(machine: &Machine) -> Status {
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks of hours, not of centuries"
    )]
    let cpu_s = machine.cpu_ticks() as f64 / TICKS_PER_S;
    Status {
        on: machine.is_on(),
        boot: machine.boot(),
        powered_on: machine.powered_on(),
        pid: machine.pid(),
        cpu_s,
    }
}

/// What OpenIPMI's `ipmi_sim` calls as its chassis control:
/// `get PARAMETER…` or `set PARAMETER VALUE`; the answer to print.
///
/// # Errors
/// The chassis does not answer or refuses.
pub fn ipmi_control(socket: &Path, arguments: &[String]) -> Result<String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["get", parameters @ ..] => {
            let status = call(socket, Command::Status)?;
            let mut answer = String::new();
            for parameter in parameters {
                match *parameter {
                    "power" => answer.push_str(&format!("power:{}\n", u8::from(status.on))),
                    "boot" if status.boot == Boot::Pxe => answer.push_str("boot:pxe\n"),
                    "boot" => answer.push_str("boot:default\n"),
                    _ => {}
                }
            }
            Ok(answer)
        }
        ["set", parameter, value] => {
            let command = match (*parameter, *value) {
                ("power", "1") => Command::Power(PowerChange::On),
                ("power", _) => Command::Power(PowerChange::Off),
                ("reset", _) => Command::Power(PowerChange::Reset),
                ("shutdown", _) => Command::Power(PowerChange::Press),
                ("boot", "pxe") => Command::Boot(Boot::Pxe),
                ("boot", _) => Command::Boot(Boot::Disk),
                _ => bail!("unknown parameter {parameter}"),
            };
            call(socket, command).map(|_| String::new())
        }
        _ => bail!("get PARAMETER… or set PARAMETER VALUE"),
    }
}
