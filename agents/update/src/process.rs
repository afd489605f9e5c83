//! Ties the processes of a probe to the one that started them.

use std::fs;
use std::io;

use anyhow::{Context as _, Result, ensure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

/// Begin of the line with the id of the parent.
const PARENT: &str = "PPid:";

/// Id of this process, as `/proc` has it.
///
/// # Errors
/// There is no `/proc`.
pub(crate) fn own_id() -> io::Result<String> {
    let own = fs::read_link("/proc/self")?;
    Ok(own.display().to_string())
}

/// Has the kernel end this process with the one that started it, whose [`own_id`] is `parent`.
///
/// # Errors
/// That one has ended already.
pub(crate) fn end_with(parent: &str) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // It may have ended before that. `getppid` does not tell: for the first process of a namespace it is
    // always 0, and `/proc` is from outside.
    let status = fs::read_to_string("/proc/self/status").context("cannot read /proc")?;
    let id = status.lines().find_map(|line| line.strip_prefix(PARENT));
    ensure!(
        id.map(str::trim) == Some(parent),
        "the process that started this one has ended"
    );
    Ok(())
}
