//! Process 1: mounts, drivers, and the supervision of hammer itself.
//!
//! hammer runs as a child, so that no failure in it ends process 1, which would be a kernel panic
//! without a reason. When the child ends, its reason is on the console and the machine reboots: at
//! once after an ordered reboot, after a pause when hammer failed.

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

/// Pause before the reboot after a failure: time to read the reason on the console, and a limit to
/// the load that a machine in a boot loop puts on pixie.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// Path of hammer in the initramfs.
const OWN_BINARY: &str = "/usr/bin/metalmesh-hammer";

/// Runs as process 1. Returns only if the kernel refuses to reboot, with the reason.
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
    say(&format!("{modules} device aliases looked up"));
    match Command::new(OWN_BINARY)
        .arg("run")
        .env("PATH", PATH)
        .env("HOME", "/root")
        .spawn()
    {
        Ok(child) => match wait_for(child.id()) {
            Ok(status) if status.success() => say("rebooting"),
            Ok(status) => pause(&format!("hammer ended: {status}")),
            Err(error) => pause(&format!("cannot wait for hammer: {error}")),
        },
        Err(error) => pause(&format!("cannot start hammer: {error}")),
    }
    // `reboot` does not write out dirty pages; an installation that unmounted everything has none
    // left, a failed one may.
    nix::unistd::sync();
    match reboot(RebootMode::RB_AUTOBOOT) {
        Ok(never) => match never {},
        Err(error) => format!("cannot reboot: {error}"),
    }
}

/// Reaps orphans until the child ends. They become children of process 1, and would stay zombies
/// if it waited for one process id only.
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
