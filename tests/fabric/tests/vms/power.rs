//! The power of the switches, which the test takes and gives over a serial port.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Mutex;

/// The serial port to the host of the emulated machines.
const PORT: &str = "/dev/ttyS2";

/// The switches' power.
pub(crate) struct Power(Mutex<Port>);

struct Port {
    orders: File,
    answers: BufReader<File>,
}

impl Power {
    pub(crate) fn open() -> Self {
        let open = || File::options().read(true).write(true).open(PORT).unwrap();
        Self(Mutex::new(Port {
            orders: open(),
            answers: BufReader::new(open()),
        }))
    }

    /// Gives a switch power.
    pub(crate) fn on(&self, switch: &str) {
        self.order(&format!("on {switch}"));
    }

    /// Takes the power from a switch.
    pub(crate) fn off(&self, switch: &str) {
        self.order(&format!("off {switch}"));
    }

    /// Resets a switch, as its watchdog does.
    pub(crate) fn reset(&self, switch: &str) {
        self.order(&format!("reset {switch}"));
    }

    /// The power of a switch is to go when its kernel has changed a port so many times.
    pub(crate) fn arm(&self, switch: &str, port: &str, events: u32) {
        self.order(&format!("arm {switch} {port} {events}"));
    }

    /// `true` if the power has gone as armed. Waits a moment for it.
    pub(crate) fn is_cut(&self) -> bool {
        self.ask("cut?") == "yes"
    }

    /// Gives up what was armed. `true` if the power has gone before.
    pub(crate) fn disarm(&self) -> bool {
        self.ask("disarm") == "yes"
    }

    /// The factor by which other work on the host stretches times: 1 on an idle one.
    pub(crate) fn stretch(&self) -> f64 {
        self.ask("stretch?").parse().unwrap()
    }

    fn order(&self, order: &str) {
        assert_eq!(self.ask(order), "ok", "{order}");
    }

    fn ask(&self, order: &str) -> String {
        let mut port = self.0.lock().unwrap();
        writeln!(port.orders, "{order}").unwrap();
        let mut answer = String::new();
        port.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }
}
