//! The hidden command that runs `check` of a new program without rights.

use std::convert::Infallible;
use std::ffi::CStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chdir, fexecve, geteuid, setgid, setgroups, setuid};

/// The user and the group without rights, of every distribution.
const NOBODY: u32 = 65_534;
/// Its arguments: the configuration comes by standard input.
const ARGUMENTS: [&CStr; 6] = [
    c"metalmesh-firewall",
    c"check",
    c"--file-only",
    c"--output",
    c"json",
    c"/dev/stdin",
];

#[derive(Debug, Args)]
pub(super) struct ProbeProgramArgs {
    /// The new program.
    program: PathBuf,
}

/// Becomes the new program.
///
/// # Errors
/// It cannot be opened or run.
pub(super) fn become_program(args: &ProbeProgramArgs) -> Result<Infallible> {
    let path = args.program.display();
    // Opened before the rights are given up: its directory is closed to others. It stays open in the
    // new program, because an interpreter of a script opens it again.
    let program = open(&args.program, OFlag::O_RDONLY, Mode::empty())
        .with_context(|| format!("cannot open {path}"))?;
    if geteuid().is_root() {
        give_up_rights().context("cannot give up the rights of root")?;
    }
    set_no_new_privs().context("cannot give up privileges")?;
    chdir(Path::new("/")).context("cannot leave the directory")?;
    let no_environment: [&CStr; 0] = [];
    fexecve(program, &ARGUMENTS, &no_environment).with_context(|| format!("cannot run {path}"))
}

/// Becomes nobody, without a network. Without the rights for one of them, such as in a container, the
/// new program keeps what this process has: it will run with that anyway.
fn give_up_rights() -> nix::Result<()> {
    let possible = |result: nix::Result<()>| match result {
        Err(Errno::EPERM) => Ok(()),
        other => other,
    };
    possible(unshare(CloneFlags::CLONE_NEWNET))?;
    possible(setgroups(&[]))?;
    possible(setgid(Gid::from_raw(NOBODY)))?;
    possible(setuid(Uid::from_raw(NOBODY)))
}
