//! One run of the guest: QEMU, the output of its test program, its exit code.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tests_lab::chassis::Accelerator;
use tests_lab::wait::Budget;

pub(super) const QEMU: &str = "qemu-system-x86_64";
/// The guest's memory, MiB.
const MEMORY_MIB: u32 = 1024;
/// Written by the guest's init after the test program has ended; then its exit code.
const EXIT: &str = "metalmesh-fabric-exit ";
/// Lines of the serial log that a failure shows.
const TAIL: usize = 40;
/// How often the time limit is looked at while the guest prints nothing.
const POLL: Duration = Duration::from_millis(500);

/// A guest to boot.
#[derive(Debug)]
pub(super) struct Guest<'a> {
    pub(super) kernel: &'a Path,
    pub(super) initrd: &'a Path,
    pub(super) accelerator: Accelerator,
    /// For the serial log.
    pub(super) dir: &'a Path,
    /// On an idle machine; a busy one stretches it.
    pub(super) limit: Duration,
}

impl Guest<'_> {
    /// Boots, passes every line of the test program to `print`, and returns its exit code.
    pub(super) fn run(&self, mut print: impl FnMut(&str)) -> Result<i32> {
        let log = self.dir.join("serial.log");
        let mut qemu = Running(self.spawn(&log)?);
        let output = qemu.0.stdout.take().context("QEMU has no output")?;
        let lines = lines_of(output);
        let mut budget = Budget::new(self.limit);
        let mut exit = None;
        loop {
            match lines.recv_timeout(POLL) {
                Ok(line) => match line.strip_prefix(EXIT) {
                    Some(code) => exit = Some(code.trim().parse::<i32>()?),
                    None => print(&line),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !budget.spend() {
                bail!(
                    "the guest has not ended within {} s; its serial log ends:\n{}",
                    self.limit.as_secs(),
                    tail(&log)
                );
            }
        }
        let status = qemu.0.wait()?;
        exit.with_context(|| {
            format!(
                "the guest ended without an exit code of the test ({QEMU}: {status}); its serial \
                 log ends:\n{}",
                tail(&log)
            )
        })
    }

    fn spawn(&self, log: &Path) -> Result<Child> {
        let cpu = "qemu64";
        let accelerator = match self.accelerator {
            Accelerator::Kvm => "kvm",
            // Else one thread of the host emulates both processors.
            Accelerator::Tcg => "tcg,thread=multi",
        };
        Command::new(QEMU)
            .args(["-machine", "q35", "-accel", accelerator, "-cpu", cpu])
            .args(["-smp", "2", "-m", &MEMORY_MIB.to_string()])
            .args(["-display", "none", "-no-reboot", "-nodefaults"])
            .args(["-device", "virtio-rng-pci"])
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(self.initrd)
            // A busy host loses the timer interrupts that the kernel checks at boot.
            .args([
                "-append",
                "console=ttyS0 panic=-1 no_timer_check oops=panic",
            ])
            .arg("-serial")
            .arg(format!("file:{}", log.display()))
            .args(["-chardev", "stdio,id=output,signal=off"])
            .args(["-serial", "chardev:output"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot start {QEMU}"))
    }
}

/// QEMU; ended with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself after a run that came to its end.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The lines of a stream, from a thread that ends with it.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if sender.send(line.trim_end().to_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let from = lines.len().saturating_sub(TAIL);
    lines[from..].join("\n")
}

/// The reason why no guest can run here.
pub(super) fn missing() -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|dir: PathBuf| dir.join(QEMU));
    if places.any(|place| place.exists()) {
        return None;
    }
    Some(format!(
        "{QEMU} (Debian package qemu-system-x86) is missing"
    ))
}
