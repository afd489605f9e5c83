//! The first process: mounts, drivers, and a watch over hammer itself.
//!
//! Hammer runs as a child, so that nothing that goes wrong in it ends process 1, which would be a
//! kernel panic without a reason. When the child ends, its reason is on the console, and the
//! machine reboots: at once when that was ordered, after a pause when it failed.

mod devices;
mod mounts;

use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::cmd::PATH;
use crate::log::uptime_s;

/// Time to read the reason; also keeps a machine that always fails from hammering its network.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
const OWN_BINARY: &str = "/usr/bin/metalmesh-hammer";

/// Runs as process 1; returns only when the kernel refuses to reboot.
#[must_use]
pub fn run() -> String {
    for failure in mounts::all() {
        say(&failure);
    }
    say(&format!(
        "metalmesh-hammer {} on {}",
        env!("CARGO_PKG_VERSION"),
        kernel()
    ));
    let modules = devices::load_drivers();
    say(&format!("{modules} drivers asked for"));
    match Command::new(OWN_BINARY)
        .arg("run")
        .env("PATH", PATH)
        .env("HOME", "/root")
        .spawn()
    {
        Ok(child) => match wait_for(child.id()) {
            Ok(status) if status.success() => say("rebooting"),
            Ok(status) => pause(&format!("hammer ended: {status}")),
            Err(error) => pause(&format!("hammer is lost: {error}")),
        },
        Err(error) => pause(&format!("cannot start hammer: {error}")),
    }
    nix::unistd::sync();
    match reboot(RebootMode::RB_AUTOBOOT) {
        Ok(never) => match never {},
        Err(error) => format!("cannot reboot: {error}"),
    }
}

/// Reaps every orphan until the child ends.
fn wait_for(child: u32) -> Result<ExitStatus, Errno> {
    use std::os::unix::process::ExitStatusExt;
    let child = i32::try_from(child)
        .map(Pid::from_raw)
        .map_err(|_| Errno::ECHILD)?;
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => {
                return Ok(ExitStatus::from_raw(code << 8));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                return Ok(ExitStatus::from_raw(signal as i32));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn pause(reason: &str) {
    say(reason);
    say(&format!("rebooting in {} s", FAILURE_PAUSE.as_secs()));
    thread::sleep(FAILURE_PAUSE);
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .unwrap_or_default()
        .trim()
        .to_string()
}

#[expect(clippy::print_stdout, reason = "process 1 has nothing but the console")]
fn say(text: &str) {
    println!("[{:8.2}] init: {text}", uptime_s());
}
