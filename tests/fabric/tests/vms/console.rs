//! A shell on a switch, over the management network.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Port of the shell.
const PORT: u16 = 23;
/// Time until a switch is taken for one without power.
const SILENCE: Duration = Duration::from_secs(2);
/// Longest time that a command may take, on an emulated processor under load.
const LIMIT: Duration = Duration::from_secs(60);

/// A shell for each command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    address: SocketAddr,
}

impl Console {
    /// The shell of the switch with this number.
    pub(crate) fn new(number: u8) -> Self {
        Self {
            address: SocketAddr::from(([10, 99, 0, number], PORT)),
        }
    }

    /// Runs commands. Their output, with that of errors; `None` if the switch does not answer.
    pub(crate) fn run(self, commands: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, SILENCE).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        // As a group, so that no command reads the others as its input.
        writeln!(stream, "( {commands} ) </dev/null 2>&1").ok()?;
        stream.shutdown(Shutdown::Write).ok()?;
        let mut output = String::new();
        stream.read_to_string(&mut output).ok()?;
        Some(output)
    }

    /// Runs a command of FRR's shell.
    pub(crate) fn vtysh(self, command: &str) -> Option<String> {
        self.run(&format!("vtysh -c '{command}'"))
    }
}
